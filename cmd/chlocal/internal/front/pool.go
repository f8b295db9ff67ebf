package front

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tocsin-project/tocsin/cmd/chlocal/internal/engine"
)

// idleMax bounds the connections kept for later, over all keys. A connection takes half a millisecond to make.
const idleMax = 16

// pool keeps idle connections by what was set on them: role, database and settings.
type pool struct {
	engine *engine.Engine

	mu   sync.Mutex
	idle []idleConn // the longest idle first
}

type idleConn struct {
	key  string
	conn *engine.Conn
}

func newPool(e *engine.Engine) *pool { return &pool{engine: e} }

func (r *request) key() string { return fmt.Sprintf("%t %q %q", r.reader, r.database, r.settings) }

// get returns a connection on which the request's database, role, settings and external tables are in force.
func (p *pool) get(r *request) (*engine.Conn, error) {
	if r.pooled() {
		key := r.key()
		p.mu.Lock()
		for i := len(p.idle) - 1; i >= 0; i-- {
			if c := p.idle[i]; c.key == key {
				p.idle = append(p.idle[:i], p.idle[i+1:]...)
				p.mu.Unlock()
				return c.conn, nil
			}
		}
		p.mu.Unlock()
	}
	c, err := p.engine.Connect()
	if err != nil {
		return nil, err
	}
	if err := setUp(c, r); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// put takes a connection back; one that must not be used again is closed.
func (p *pool) put(r *request, c *engine.Conn, reusable bool) {
	if !reusable || !r.pooled() {
		c.Close()
		return
	}
	p.mu.Lock()
	p.idle = append(p.idle, idleConn{r.key(), c})
	var oldest *engine.Conn
	if len(p.idle) > idleMax {
		oldest = p.idle[0].conn
		p.idle = append(p.idle[:0], p.idle[1:]...)
	}
	p.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.conn.Close()
	}
	p.idle = nil
}

func setUp(c *engine.Conn, r *request) error {
	statements := []string{"USE " + engine.QuoteIdent(r.database)}
	for _, t := range r.tables {
		name := engine.QuoteIdent(t.name)
		statements = append(statements, "CREATE TEMPORARY TABLE "+name+" ("+t.structure+")")
		if t.data.size > 0 {
			statements = append(statements, "INSERT INTO "+name+" FROM INFILE "+engine.QuoteString(t.data.path)+" FORMAT "+t.format)
		}
	}
	if r.reader {
		statements = append(statements, "SET ROLE reader")
	}
	// The comment starts with the connection's tag, by which its statements are killed. readonly goes last: after it
	// other settings of a request with readonly=1 would be refused.
	comment, readonly := "", ""
	var set strings.Builder
	for _, s := range r.settings {
		switch s.name {
		case "log_comment":
			comment = s.value
		case "readonly":
			readonly = s.value
		default:
			fmt.Fprintf(&set, ", %s=%s", s.name, engine.QuoteString(s.value))
		}
	}
	statements = append(statements, "SET log_comment="+engine.QuoteString(c.Tag()+" "+comment)+set.String())
	if r.reader && (readonly == "" || readonly == "0") {
		readonly = "2"
	}
	if readonly != "" {
		statements = append(statements, "SET readonly="+engine.QuoteString(readonly))
	}
	for _, s := range statements {
		if _, err := c.Exec(s); err != nil {
			return err
		}
	}
	return nil
}
