// Package slack is a stand-in for the part of Slack's Web API that Tocsin uses, on a loopback port: it checks what the
// real one checks, keeps channels and messages, fails on demand, and shows the channel as a person would see it. It is
// used by tests and by the demo, never in production.
package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault is how the next calls are answered.
type Fault string

const (
	// Error500 answers 500 without applying anything.
	Error500 Fault = "500"
	// RateLimit answers 429 with Retry-After.
	RateLimit Fault = "429"
	// Hang never answers and applies nothing.
	Hang Fault = "hang"
	// Lost applies the call and cuts the connection before the answer.
	Lost Fault = "lost"
)

// Message is one message; Replies are its thread.
type Message struct {
	TS       string            `json:"ts"`
	ThreadTS string            `json:"thread_ts,omitempty"`
	Text     string            `json:"text"`
	Blocks   []json.RawMessage `json:"blocks,omitempty"`
	Metadata *Metadata         `json:"metadata,omitempty"`
	Edits    int               `json:"edits"`
	PostedAt time.Time         `json:"posted_at"`
	Replies  []Message         `json:"replies,omitempty"`
}

// Metadata is what an application attaches to its message.
type Metadata struct {
	EventType    string         `json:"event_type"`
	EventPayload map[string]any `json:"event_payload"`
}

// Channel has its messages oldest first.
type Channel struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Topic    string    `json:"topic,omitempty"`
	Messages []Message `json:"messages"`
}

// Delete removes a message, as somebody may in Slack.
func (s *Server) Delete(name, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channel(name, true); c != nil {
		c.Messages = slices.DeleteFunc(c.Messages, func(m Message) bool { return m.TS == ts })
	}
}

// State is all that can be inspected, also as JSON under /state.
type State struct {
	Channels []Channel `json:"channels"`
	Rejected []string  `json:"rejected"` // method and error of calls that were refused
	Mentions []string  `json:"mentions"` // @channel and the like, which no text of ours may cause
	Calls    int       `json:"calls"`
}

// Options adjust the stand-in.
type Options struct {
	Token    string   // the only valid one; empty takes any
	Channels []string // that exist at the start
	// Unlimited lifts one message a second for each channel and fifty updates a minute.
	Unlimited bool
	// RetryAfter is what a forced RateLimit asks for, in seconds; 1 where not given.
	RetryAfter int
	Now        func() time.Time
}

// Server is a running stand-in.
type Server struct {
	URL  string // of the API, ending in /api/, as slack-go wants it
	Base string
	opts Options
	http *http.Server
	done chan struct{}
	stop chan struct{}

	mu      sync.Mutex
	state   State
	faults  []fault
	lastTS  int64
	posted  map[string]time.Time
	updated []time.Time
}

type fault struct {
	kind   Fault
	method string
}

// Start listens on addr, which must be a loopback address such as 127.0.0.1:0.
func Start(addr string, o Options) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("the Slack stand-in listens on loopback addresses only, not on %q", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the Slack stand-in: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = 1
	}
	s := &Server{Base: "http://" + l.Addr().String(), opts: o, posted: map[string]time.Time{}, done: make(chan struct{}), stop: make(chan struct{})}
	s.URL = s.Base + "/api/"
	for _, name := range o.Channels {
		s.addChannel(name)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.call)
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.State()) })
	mux.HandleFunc("POST /faults", s.setFaults)
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /channels/{name}", s.page)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.http.Serve(l); close(s.done) }()
	return s, nil
}

// Close ends the server and calls that hang.
func (s *Server) Close() error {
	close(s.stop)
	err := s.http.Close()
	<-s.done
	return err
}

// Fail lets the next n calls of a method fail; an empty method means any.
func (s *Server) Fail(f Fault, n int, method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.faults = append(s.faults, fault{f, method})
	}
}

// Heal forgets faults that have not been used.
func (s *Server) Heal() { s.mu.Lock(); s.faults = nil; s.mu.Unlock() }

// State copies what has happened so far.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, _ := json.Marshal(s.state)
	var st State
	_ = json.Unmarshal(raw, &st)
	return st
}

// Channel copies one channel by its name.
func (s *Server) Channel(name string) Channel {
	for _, c := range s.State().Channels {
		if c.Name == name {
			return c
		}
	}
	return Channel{}
}

func (s *Server) takeFault(method string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.method == "" || f.method == method {
			s.faults = slices.Delete(s.faults, i, i+1)
			return f.kind
		}
	}
	return ""
}

// args are the parameters of a call, from a form or from JSON.
type args map[string]string

func readArgs(r *http.Request) (args, error) {
	a := args{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var m map[string]json.RawMessage
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m); err != nil {
			return nil, err
		}
		for k, v := range m {
			var text string
			if json.Unmarshal(v, &text) != nil {
				text = string(v)
			}
			a[k] = text
		}
	} else {
		r.Body = http.MaxBytesReader(nil, r.Body, 1<<20)
		if err := r.ParseForm(); err != nil {
			return nil, err
		}
		for k := range r.Form {
			a[k] = r.Form.Get(k)
		}
	}
	if h := r.Header.Get("Authorization"); strings.HasPrefix(h, "Bearer ") {
		a["token"] = strings.TrimPrefix(h, "Bearer ")
	}
	return a, nil
}

type reply map[string]any

func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	method := r.PathValue("method")
	s.mu.Lock()
	s.state.Calls++
	s.mu.Unlock()
	a, err := readArgs(r)
	if err != nil {
		s.refuse(w, method, "invalid_json")
		return
	}
	f := s.takeFault(method)
	switch f {
	case Error500:
		http.Error(w, "<html>internal error</html>", http.StatusInternalServerError)
		return
	case RateLimit:
		limited(w, s.opts.RetryAfter)
		return
	case Hang:
		select {
		case <-r.Context().Done():
		case <-s.stop:
		}
		return
	case Lost: // after it has been applied
	}
	switch {
	case a["token"] == "":
		s.refuse(w, method, "not_authed")
		return
	case s.opts.Token != "" && a["token"] != s.opts.Token:
		s.refuse(w, method, "invalid_auth")
		return
	}
	handler := map[string]func(args) (reply, string){
		"auth.test": s.authTest, "chat.postMessage": s.post, "chat.update": s.update,
		"conversations.create": s.create, "conversations.list": s.list, "conversations.setTopic": s.topic,
		"conversations.history": s.history, "conversations.replies": s.replies,
	}[method]
	if handler == nil {
		s.refuse(w, method, "unknown_method")
		return
	}
	s.mu.Lock()
	out, problem := handler(a)
	s.mu.Unlock()
	switch {
	case f == Lost:
		if h, ok := w.(http.Hijacker); ok {
			if c, _, err := h.Hijack(); err == nil {
				_ = c.Close()
			}
		}
	case problem == "ratelimited":
		limited(w, 1)
	case problem != "":
		s.refuse(w, method, problem)
	default:
		out["ok"] = true
		answer(w, out)
	}
}

func limited(w http.ResponseWriter, after int) {
	w.Header().Set("Retry-After", strconv.Itoa(after))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"ok":false,"error":"ratelimited"}`)
}

func (s *Server) refuse(w http.ResponseWriter, method, problem string) {
	s.mu.Lock()
	s.state.Rejected = append(s.state.Rejected, method+": "+problem)
	s.mu.Unlock()
	answer(w, reply{"ok": false, "error": strings.SplitN(problem, " ", 2)[0], "response_metadata": map[string]any{"messages": []string{problem}}})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

// setFaults reads ?fault=500&n=3&method=chat.update, so that a demo in another process can break it too.
func (s *Server) setFaults(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.FormValue("n"))
	f := Fault(r.FormValue("fault"))
	if err != nil || n < 0 || n > 10_000 || !slices.Contains([]Fault{Error500, RateLimit, Hang, Lost}, f) {
		http.Error(w, "fault must be 500, 429, hang or lost, and n a number", http.StatusBadRequest)
		return
	}
	s.Fail(f, n, r.FormValue("method"))
}
