package console

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

//go:embed templates/*.html static/*
var files embed.FS

// Options are what the console is made of. Reader, Status and Logger are required.
type Options struct {
	Reader     Reader
	Status     func() Status
	Deliveries Deliveries
	// Series gives the curves of an incident's page; the page has none where it is nil.
	Series    func(context.Context, incident.Incident) ([]Series, error)
	Commander Commander
	Drill     func(ctx context.Context) (string, error)
	Logger    *slog.Logger
	// Now is the wall clock, for ages on pages only.
	Now func() time.Time
}

// Console serves the pages and the API.
type Console struct {
	Options
	read   Reader // for pages
	pages  *template.Template
	origin *http.CrossOriginProtection
}

// New makes a console. It starts nothing.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Deliveries == nil {
		o.Deliveries = func(string) []Delivery { return nil }
	}
	pages, err := template.New("").Funcs(funcs).ParseFS(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	read := &remembering{Reader: o.Reader, tick: func() uint64 { return o.Status().Tick }, now: o.Now, kept: map[string]kept{}}
	return &Console{Options: o, read: read, pages: pages, origin: http.NewCrossOriginProtection()}, nil
}

// Register adds the routes. What changes something is refused when another site's page sent it with the reader's
// browser.
func (c *Console) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", c.index)
	mux.HandleFunc("GET /incidents/{id}", c.incident)
	mux.HandleFunc("POST /incidents/{id}/{command}", c.button)
	mux.Handle("GET /static/", http.FileServerFS(files))
	mux.HandleFunc("GET /api/v1/status", c.apiStatus)
	mux.HandleFunc("GET /api/v1/incidents", c.apiIncidents)
	mux.HandleFunc("GET /api/v1/incidents/{id}", c.apiIncident)
	mux.HandleFunc("POST /api/v1/incidents/{id}/{command}", c.apiCommand)
	mux.HandleFunc("GET /api/v1/deliveries", c.apiDeliveries)
	mux.HandleFunc("POST /api/v1/drill", c.apiDrill)
}

// page renders into memory first, so that an error in a template is an error page and not half a page.
func (c *Console) page(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := c.pages.ExecuteTemplate(&b, name, data); err != nil {
		c.Logger.Error("rendering a page failed", "page", name, "err", err)
		http.Error(w, "This page could not be rendered; the log has the reason.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	if _, err := w.Write(b.Bytes()); err != nil {
		c.Logger.Debug("writing a page failed", "err", err)
	}
}

// problem is the page that says why another one could not be shown.
func (c *Console) problem(w http.ResponseWriter, status int, what string) {
	c.page(w, status, "problem.html", struct {
		Status Status
		What   string
	}{c.Status(), what})
}

func (c *Console) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		c.Logger.Debug("writing an answer failed", "err", err)
	}
}

type apiError struct {
	Error string `json:"error"`
}

func (c *Console) fail(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrNotFound) {
		c.json(w, http.StatusNotFound, apiError{err.Error()})
		return
	}
	c.Logger.Warn("answering failed", "err", err)
	c.json(w, http.StatusServiceUnavailable, apiError{err.Error()})
}
