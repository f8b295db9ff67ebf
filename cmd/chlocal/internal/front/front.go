package front

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/cmd/chlocal/internal/engine"
)

// Options bound what clients may do.
type Options struct {
	Database     string // for requests that name none
	Reader       string // the user who may only read
	QueriesMax   int    // running at once; more wait
	BodyMaxBytes int64  // of one request, uncompressed
	Logger       *slog.Logger
}

// Front is the HTTP handler. It owns the connections it opens, not the engine: Close closes the idle ones, and must
// come after the last request and before Engine.Close.
type Front struct {
	opts   Options
	engine *engine.Engine
	pool   *pool
	slots  chan struct{}

	mu       sync.Mutex
	draining bool
	active   int
	drained  chan struct{} // closed when draining and nothing is active
}

var _ http.Handler = (*Front)(nil)

// New makes a handler for an engine that is open.
func New(e *engine.Engine, opts Options) *Front {
	return &Front{opts: opts, engine: e, pool: newPool(e), slots: make(chan struct{}, opts.QueriesMax), drained: make(chan struct{})}
}

// Drain refuses new requests and waits until those that run are done, or ctx ends. It may be called again.
// http.Server.Shutdown is not enough: it waits five seconds for connections that never sent a request.
func (f *Front) Drain(ctx context.Context) error {
	f.mu.Lock()
	if !f.draining {
		f.draining = true
		if f.active == 0 {
			close(f.drained)
		}
	}
	f.mu.Unlock()
	select {
	case <-f.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Front) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.draining {
		return false
	}
	f.active++
	return true
}

func (f *Front) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active--; f.draining && f.active == 0 {
		close(f.drained)
	}
}

// Close closes the idle connections.
func (f *Front) Close() { f.pool.close() }

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-ClickHouse-Server-Display-Name", "chlocal")
	h.Set("X-ClickHouse-Timezone", "UTC")
	if err := sameMachine(r); err != nil {
		f.fail(w, err)
		return
	}
	if !f.enter() {
		f.fail(w, engine.NewError(engine.CodeAborted, "ABORTED", "chlocal is stopping"))
		return
	}
	defer f.leave()
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/ping", r.URL.Path == "/" && r.Method == http.MethodGet && len(query) == 0:
		io.WriteString(w, "Ok.\n")
		return
	case r.URL.Path != "/":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodPost:
		http.Error(w, "only GET and POST", http.StatusMethodNotAllowed)
		return
	}
	id := query.Get("query_id")
	if id == "" {
		id = rand.Text()
	}
	h.Set("X-ClickHouse-Query-Id", id)
	// The slot is taken before the body is read: bodies are held in memory.
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-r.Context().Done():
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, f.opts.BodyMaxBytes)
	req, err := f.parse(r, query)
	if err == nil {
		defer req.close()
		err = f.serve(w, r, req)
	}
	if err != nil {
		f.opts.Logger.Debug("Query failed", "query_id", id, "err", err)
		f.fail(w, err)
	}
}

// serve runs one parsed request. An error means that nothing of a body was written yet.
func (f *Front) serve(w http.ResponseWriter, r *http.Request, req *request) error {
	if string(req.text) == helloQuery && req.query.Get("client_protocol_version") != "" {
		return respond(w, r, req, hello(f.engine.Version()))
	}
	if err := req.allowed(); err != nil {
		return err
	}
	ctx := r.Context()
	c, err := f.pool.get(req)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { f.abandon(c.Tag(), done) })
	reusable := false
	defer func() {
		close(done)
		// A watch that could not be stopped may still kill by the connection's tag: that connection serves nobody else.
		f.pool.put(req, c, stop() && reusable)
	}()
	switch {
	case req.data != nil:
		err = f.insert(w, req, c)
		reusable = err == nil
		return err
	case req.streams():
		var sent bool
		sent, reusable, err = f.stream(w, r, req, c)
		if sent { // the response has ended with the exception in its body
			return nil
		}
		return err
	default:
		err = c.Query(req.text, req.outputFormat, req.params, func(output []byte, s engine.Summary) error {
			summarise(w, s)
			w.Header().Set("X-ClickHouse-Format", req.outputFormat)
			return respond(w, r, req, output)
		})
		reusable = err == nil
		return err
	}
}

// killEvery is the pause between two attempts to kill an abandoned statement.
const killEvery = 50 * time.Millisecond

// abandon kills what runs on a connection whose client went away. It repeats that until the statement is done, because
// the first attempt may come before the engine has put the statement on its list.
func (f *Front) abandon(tag string, done <-chan struct{}) {
	for {
		if err := f.engine.Kill(tag); err != nil {
			f.opts.Logger.Warn("Could not cancel an abandoned query", "err", err)
		}
		select {
		case <-done:
			return
		case <-time.After(killEvery):
		}
	}
}

// sameMachine keeps web pages away. The port is on loopback, yet a browser on this machine would send it a page's
// form posts (they carry Origin) or be led to it by a name that an attacker's DNS points here (the Host differs).
func sameMachine(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	addr, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return engine.NewError(engine.CodeAccessDenied, "ACCESS_DENIED", fmt.Sprintf("host %q is not this machine", host))
	}
	if r.Header.Get("Origin") != "" {
		return engine.NewError(engine.CodeAccessDenied, "ACCESS_DENIED", "requests of web pages are refused")
	}
	return nil
}
