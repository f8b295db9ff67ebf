package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// engineProxy stands between one member and ClickHouse.
type engineProxy struct {
	member   int
	target   string // host:port
	traps    *traps
	ledger   *tokens
	server   *http.Server
	listener net.Listener
	client   *http.Client
	wg       sync.WaitGroup
}

// tokens are the insert tokens that ClickHouse has confirmed, so that a held insert can wait for its successor's.
type tokens struct {
	mu   sync.Mutex
	seen map[string]chan struct{} // closed when confirmed
}

func (t *tokens) of(token string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string]chan struct{}{}
	}
	c, ok := t.seen[token]
	if !ok {
		c = make(chan struct{})
		t.seen[token] = c
	}
	return c
}

func (t *tokens) confirm(token string) {
	c := t.of(token)
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

func newEngineProxy(member int, target string, t *traps, ledger *tokens) (*engineProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand before ClickHouse: %w", err)
	}
	p := &engineProxy{member: member, target: target, traps: t, ledger: ledger, listener: l,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	p.wg.Go(func() { _ = p.server.Serve(l) })
	return p, nil
}

func (p *engineProxy) addr() string { return p.listener.Addr().String() }

func (p *engineProxy) close() {
	_ = p.server.Close()
	p.wg.Wait()
	p.client.CloseIdleConnections()
}

// passing is a request on its way.
type passing struct {
	point string
	token string
}

// step names what a statement is to the protocol.
func step(statement string) string {
	s := strings.TrimSpace(statement)
	if len(s) < 6 || !strings.EqualFold(s[:6], "INSERT") {
		return "query"
	}
	table, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s[6:]), "INTO")), " ")
	table = strings.Trim(strings.ReplaceAll(table, "`", ""), "(")
	if i := strings.LastIndexByte(table, '.'); i >= 0 {
		table = table[i+1:]
	}
	return "insert " + table
}

const bodyMax = 256 << 20

func (p *engineProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		return // the member broke off
	}
	params := r.URL.Query()
	statement := params.Get("query")
	if statement == "" && r.Header.Get("Content-Encoding") == "" {
		statement = string(body[:min(len(body), 300)])
	}
	at := passing{step(statement), params.Get("insert_deduplication_token")}
	if p.traps.lost.tokens && at.token != "" {
		params.Del("insert_deduplication_token")
		params.Set("insert_deduplicate", "0")
		params.Set("deduplicate_insert", "disable")
	}
	h := hit{p.member, -1}
	tr := p.traps.spring(h, at.point)
	defer tr.finish(false)
	then, _ := tr.at(before, h)
	if tr != nil && tr.held != nil {
		stored := p.ledger.of(at.token)
		if then == orphan {
			p.wg.Go(func() {
				tr.held(stored)
				if res, err := p.pass(r, params, bytes.NewReader(body), int64(len(body))); err == nil {
					res.Body.Close()
				}
			})
			panic(http.ErrAbortHandler)
		}
		tr.held(stored)
	}
	switch then {
	case lose, orphan:
		panic(http.ErrAbortHandler)
	case refuse:
		w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(tr.code))
		http.Error(w, fmt.Sprintf("Code: %d. DB::Exception: refused for now", tr.code), http.StatusServiceUnavailable)
		return
	case half:
		p.cut(r, params, body, tr)
		panic(http.ErrAbortHandler)
	default:
	}
	res, err := p.pass(r, params, bytes.NewReader(body), int64(len(body)))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if at.token != "" && res.StatusCode == http.StatusOK && res.Header.Get("X-ClickHouse-Exception-Code") == "" {
		p.ledger.confirm(at.token)
	}
	if then, struck := tr.at(after, h); struck && then != proceed {
		panic(http.ErrAbortHandler)
	}
	for k, v := range res.Header {
		if k != "Content-Length" && k != "Transfer-Encoding" {
			w.Header()[k] = v
		}
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(out)
	if tr != nil && tr.stage == answered {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		tr.at(answered, h)
	}
}

// requestTimeout is beyond all patience of a member: what it has given up may still be done.
const requestTimeout = 2 * time.Minute

func (p *engineProxy) pass(r *http.Request, params url.Values, body io.Reader, size int64) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
	req, err := http.NewRequestWithContext(ctx, r.Method, "http://"+p.target+r.URL.Path+"?"+params.Encode(), body)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header = r.Header.Clone()
	req.ContentLength = size
	res, err := p.client.Do(req)
	if err != nil {
		cancel()
		return nil, err
	}
	res.Body = &cancelling{res.Body, cancel}
	return res, nil
}

type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

var errCut = errors.New("cut off")

// cut sends the first half of a statement's data, strikes, and breaks the connection off.
func (p *engineProxy) cut(r *http.Request, params url.Values, body []byte, tr *trap) {
	broken := io.MultiReader(bytes.NewReader(body[:len(body)/2]), failing{func() {
		if tr.midway != nil {
			tr.midway(hit{p.member, -1})
		}
	}})
	if res, err := p.pass(r, params, broken, int64(len(body))); err == nil {
		res.Body.Close()
	}
}

type failing struct{ first func() }

func (f failing) Read([]byte) (int, error) {
	f.first()
	return 0, errCut
}
