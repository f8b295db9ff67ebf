package console

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
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
	// Silences are those of the installation; a console without them has nil.
	Silences Silencer
	Logger   *slog.Logger
	// Names are those by which people reach the console, in lower case, beside addresses and names without a dot.
	Names []string
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
// browser, and everything when the browser was led here under a name that is not ours.
func (c *Console) Register(mux *http.ServeMux) {
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /{$}":                              c.index,
		"GET /incidents/{id}":                   c.incident,
		"POST /incidents/{id}/{command}":        c.button,
		"GET /static/":                          http.FileServerFS(files).ServeHTTP,
		"GET /api/v1/status":                    c.apiStatus,
		"GET /api/v1/incidents":                 c.apiIncidents,
		"GET /api/v1/incidents/{id}":            c.apiIncident,
		"POST /api/v1/incidents/{id}/{command}": c.apiCommand,
		"GET /api/v1/deliveries":                c.apiDeliveries,
		"POST /api/v1/drill":                    c.apiDrill,
		"GET /api/v1/silences":                  c.apiSilences,
		"POST /api/v1/silences":                 c.apiSilence,
		"POST /api/v1/silences/{id}/expire":     c.apiExpire,
	} {
		mux.HandleFunc(pattern, c.byOurName(h))
	}
}

// byOurName refuses requests under a name that is not ours. A page of example.net whose DNS points here after it was
// loaded is of one origin with us to the browser: it could read everything, order and drill. Addresses cannot be
// pointed elsewhere, and names without a dot are nobody's to register.
func (c *Console) byOurName(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
		_, err := netip.ParseAddr(name)
		if err == nil || !strings.Contains(name, ".") || slices.Contains(c.Names, name) {
			h(w, r)
			return
		}
		c.json(w, http.StatusMisdirectedRequest, apiError{fmt.Sprintf("this is not %.100q: if people shall reach it by that name, it has to stand in http.external_url", name)})
	}
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
