// Package pagerduty is a stand-in for PagerDuty's Events API v2 on a loopback port: it checks what the real one
// checks, keeps alerts as it does, fails on demand, and shows what an engineer would have been told. It is used by
// tests and by the demo, never in production.
package pagerduty

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Limits of the real service.
const (
	maxBody      = 512 << 10
	maxSummary   = 1024
	maxDedup     = 255
	keyLength    = 32
	callsAMinute = 120
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

// Alert is one alert; a trigger after a resolve opens a new one, as at PagerDuty.
type Alert struct {
	RoutingKey string    `json:"routing_key"` // its last four characters
	DedupKey   string    `json:"dedup_key"`
	Status     string    `json:"status"` // triggered, acknowledged, resolved
	Severity   string    `json:"severity"`
	Summary    string    `json:"summary"`
	Payload    any       `json:"payload"`
	Links      any       `json:"links,omitempty"`
	Triggers   int       `json:"triggers"` // 1 and its repeats
	OpenedAt   time.Time `json:"opened_at"`
	ClosedAt   time.Time `json:"closed_at,omitzero"`
}

// State is all that can be inspected, also as JSON under /state.
type State struct {
	Alerts []Alert `json:"alerts"`
	// Dropped are acknowledges and resolves that matched nothing open, answered 202 all the same.
	Dropped  []string `json:"dropped"`
	Rejected []string `json:"rejected"` // reasons of 400s
	Calls    int      `json:"calls"`
	Changes  int      `json:"changes"`
}

// Options adjust the stand-in.
type Options struct {
	// Keys are the routing keys that exist; none means any of 32 characters.
	Keys []string
	// Unlimited lifts the limit of calls a minute.
	Unlimited bool
	Now       func() time.Time
}

// Server is a running stand-in.
type Server struct {
	URL  string // of /v2/enqueue
	Base string
	opts Options
	http *http.Server
	done chan struct{}
	stop chan struct{}

	mu     sync.Mutex
	state  State
	keys   []string // full routing key of each alert
	faults []Fault
	calls  map[string][]time.Time
}

// Start listens on addr, which must be a loopback address such as 127.0.0.1:0.
func Start(addr string, o Options) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("the PagerDuty stand-in listens on loopback addresses only, not on %q", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the PagerDuty stand-in: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{Base: "http://" + l.Addr().String(), opts: o, calls: map[string][]time.Time{}, done: make(chan struct{}), stop: make(chan struct{})}
	s.URL = s.Base + "/v2/enqueue"
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/enqueue", s.enqueue)
	mux.HandleFunc("POST /v2/change/enqueue", s.change)
	mux.HandleFunc("GET /state", s.showState)
	mux.HandleFunc("POST /faults", s.setFaults)
	mux.HandleFunc("GET /{$}", s.page)
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

// Fail lets the next n calls fail.
func (s *Server) Fail(f Fault, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.faults = append(s.faults, f)
	}
}

// Heal forgets faults that have not been used.
func (s *Server) Heal() { s.mu.Lock(); s.faults = nil; s.mu.Unlock() }

// State copies what has happened so far.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.Alerts, st.Dropped, st.Rejected = slices.Clone(st.Alerts), slices.Clone(st.Dropped), slices.Clone(st.Rejected)
	return st
}

func (s *Server) fault() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) == 0 {
		return ""
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f
}

type request struct {
	RoutingKey  string `json:"routing_key"`
	EventAction string `json:"event_action"`
	DedupKey    string `json:"dedup_key"`
	Payload     *struct {
		Summary   string `json:"summary"`
		Source    string `json:"source"`
		Severity  string `json:"severity"`
		Timestamp string `json:"timestamp"`
	} `json:"payload"`
	Links  []struct{ Href, Text string } `json:"links"`
	Images []struct{ Src, Href string }  `json:"images"`
}

func (s *Server) enqueue(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.state.Calls++
	s.mu.Unlock()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return
	}
	f := s.fault()
	switch f {
	case Error500:
		http.Error(w, `{"status":"error","message":"internal"}`, http.StatusInternalServerError)
		return
	case RateLimit:
		tooMany(w)
		return
	case Hang:
		select {
		case <-r.Context().Done():
		case <-s.stop:
		}
		return
	case Lost: // after it has been applied
	}
	if len(body) > maxBody {
		s.reject(w, http.StatusRequestEntityTooLarge, "Payload is larger than 512 KB")
		return
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		s.reject(w, http.StatusBadRequest, "Event object is not valid JSON: "+err.Error())
		return
	}
	if problem := s.check(req, body); problem != "" {
		s.reject(w, http.StatusBadRequest, problem)
		return
	}
	if !s.admit(req.RoutingKey) {
		tooMany(w)
		return
	}
	s.apply(req, body)
	if f == Lost {
		hijackAndCut(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "success", "message": "Event processed", "dedup_key": req.DedupKey})
}

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, `{"status":"throttle exceeded","message":"Requests for this service are arriving too quickly. Please retry later."}`, http.StatusTooManyRequests)
}

func hijackAndCut(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if c, _, err := h.Hijack(); err == nil {
			_ = c.Close()
		}
	}
}

func (s *Server) reject(w http.ResponseWriter, code int, problem string) {
	s.mu.Lock()
	s.state.Rejected = append(s.state.Rejected, problem)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "invalid event", "message": "Event object is invalid", "errors": []string{problem}})
}

func (s *Server) check(r request, body []byte) string {
	switch {
	case !utf8.Valid(body):
		return "the body is not UTF-8"
	case len(r.RoutingKey) != keyLength:
		return "Length of 'routing_key' is incorrect (should be 32 characters)"
	case len(s.opts.Keys) > 0 && !slices.Contains(s.opts.Keys, r.RoutingKey):
		return "Invalid routing key"
	case !slices.Contains([]string{"trigger", "acknowledge", "resolve"}, r.EventAction):
		return "'event_action' is invalid (must be one of the following: 'trigger', 'acknowledge' or 'resolve')"
	case utf8.RuneCountInString(r.DedupKey) > maxDedup:
		return "Length of 'dedup_key' is incorrect (should be 255 characters or less)"
	case r.EventAction != "trigger" && r.DedupKey == "":
		return "'dedup_key' is missing or blank"
	case r.EventAction != "trigger":
		return ""
	case r.Payload == nil:
		return "'payload' is missing or blank"
	case strings.TrimSpace(r.Payload.Summary) == "":
		return "'payload.summary' is missing or blank"
	case utf8.RuneCountInString(r.Payload.Summary) > maxSummary:
		return "Length of 'payload.summary' is incorrect (should be 1024 characters or less)"
	case r.Payload.Source == "":
		return "'payload.source' is missing or blank"
	case !slices.Contains([]string{"critical", "error", "warning", "info"}, r.Payload.Severity):
		return "'payload.severity' is invalid (must be one of the following: 'critical', 'warning', 'error' or 'info')"
	}
	if ts := r.Payload.Timestamp; ts != "" {
		if _, err := time.Parse(time.RFC3339Nano, ts); err != nil {
			return "'payload.timestamp' is invalid"
		}
	}
	for _, l := range r.Links {
		if u, err := url.Parse(l.Href); err != nil || u.Host == "" {
			return "'links.href' is invalid"
		}
	}
	for _, i := range r.Images {
		if u, err := url.Parse(i.Src); err != nil || u.Scheme != "https" {
			return "'images.src' must be HTTPS"
		}
	}
	return ""
}

// admit keeps to about 120 calls a minute for each key.
func (s *Server) admit(key string) bool {
	if s.opts.Unlimited {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	recent := slices.DeleteFunc(s.calls[key], func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(recent) >= callsAMinute {
		s.calls[key] = recent
		return false
	}
	s.calls[key] = append(recent, now)
	return true
}

func (s *Server) apply(r request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	var open *Alert
	for i := range s.state.Alerts {
		if a := &s.state.Alerts[i]; s.keys[i] == r.RoutingKey && a.DedupKey == r.DedupKey && a.Status != "resolved" {
			open = a
		}
	}
	if r.EventAction != "trigger" {
		switch {
		case open == nil:
			s.state.Dropped = append(s.state.Dropped, r.EventAction+" "+r.DedupKey)
		case r.EventAction == "acknowledge":
			open.Status = "acknowledged"
		default:
			open.Status, open.ClosedAt = "resolved", now
		}
		return
	}
	var full struct{ Payload, Links any }
	_ = json.Unmarshal(body, &full)
	if open == nil {
		s.keys = append(s.keys, r.RoutingKey)
		s.state.Alerts = append(s.state.Alerts, Alert{RoutingKey: "…" + r.RoutingKey[28:], DedupKey: r.DedupKey, Status: "triggered", OpenedAt: now})
		open = &s.state.Alerts[len(s.state.Alerts)-1]
	}
	open.Triggers++
	open.Severity, open.Summary, open.Payload, open.Links = r.Payload.Severity, r.Payload.Summary, full.Payload, full.Links
}

func (s *Server) change(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	var req request
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&req)
	}
	if err == nil && (len(req.RoutingKey) != keyLength || req.Payload == nil || req.Payload.Summary == "") {
		err = errors.New("'routing_key' or 'payload.summary' is missing or blank")
	}
	if err != nil {
		s.reject(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	s.state.Changes++
	s.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"success","message":"Change event processed"}`)
}

func (s *Server) showState(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.State())
}

// setFaults reads ?fault=500&n=3, so that a demo in another process can break it too.
func (s *Server) setFaults(w http.ResponseWriter, r *http.Request) {
	var n int
	_, err := fmt.Sscan(r.FormValue("n"), &n)
	f := Fault(r.FormValue("fault"))
	if err != nil || n < 0 || n > 10_000 || !slices.Contains([]Fault{Error500, RateLimit, Hang, Lost}, f) {
		http.Error(w, "fault must be 500, 429, hang or lost, and n a number", http.StatusBadRequest)
		return
	}
	s.Fail(f, n)
}
