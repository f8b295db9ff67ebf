package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/console"
	"github.com/tocsin-project/tocsin/internal/door"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// HTTPConfig is the `http` section.
type HTTPConfig struct {
	Listen string `yaml:"listen"`
	// ExternalURL is where people reach this server; links in pages and messages begin with it.
	ExternalURL string         `yaml:"external_url"`
	Pos         strictyaml.Pos `yaml:"-"`
}

// SetDefaults holds what a configuration means that leaves a key out.
func (c *HTTPConfig) SetDefaults() { c.Listen = "127.0.0.1:9460" }

func (c *HTTPConfig) check() (errs strictyaml.Errors) {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, c.Pos.Errorf("http: listen %q is not host:port", c.Listen))
	}
	if c.ExternalURL == "" {
		return errs
	}
	if u, err := url.Parse(c.ExternalURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, c.Pos.Errorf("http: external_url %q is no http address", c.ExternalURL))
	}
	return errs
}

// External is the base of links, without a slash at its end. A server that listens on all addresses is reached by its
// machine's name: nobody can follow a link to 0.0.0.0.
func (c *HTTPConfig) External() string {
	if c.ExternalURL != "" {
		return strings.TrimRight(c.ExternalURL, "/")
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		if name, err := os.Hostname(); err == nil && name != "" {
			return "http://" + net.JoinHostPort(name, port)
		}
	}
	return "http://" + c.Listen
}

// serverModule serves the console, the API, /metrics and the health checks. It starts last and stops first, so that
// nobody is shown a process that has not begun or has already ended.
var serverModule = fx.Module("http",
	component("http"),
	fx.Provide(newMux),
	fx.Invoke(serve),
)

// newMux asks for the places first: a receiver that can't be built ends the start before anything is opened.
func newMux(cfg *Config, _ places, c *console.Console, d *door.Door, reg *prometheus.Registry, status func() console.Status, reload *reloader) *http.ServeMux {
	mux := http.NewServeMux()
	c.Register(mux)
	if cfg.Door.Listen == "" {
		d.Register(mux)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	mux.Handle("POST /-/reload", http.NewCrossOriginProtection().Handler(reload))
	// Healthy means that the process answers: a restart would not help against a database that is down.
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Tocsin is healthy.") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if p := status().NotReady; len(p) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "Tocsin is not ready: "+strings.Join(p, "; "))
			return
		}
		fmt.Fprintln(w, "Tocsin is ready.")
	})
	return mux
}

func serve(lc fx.Lifecycle, stop fx.Shutdowner, cfg *Config, mux *http.ServeMux, logger *slog.Logger) {
	lc.Append(serving(stop, cfg.HTTP.Listen, mux, logger))
}

// serving is the life of a server.
func serving(stop fx.Shutdowner, address string, handler http.Handler, logger *slog.Logger) fx.Hook {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	return fx.Hook{
		OnStart: func(ctx context.Context) error {
			var l net.ListenConfig
			ln, err := l.Listen(ctx, "tcp", address)
			if err != nil {
				return fmt.Errorf("listen for HTTP: %w", err)
			}
			logger.Info("listening", "address", ln.Addr().String())
			go func() {
				if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
					logger.Error("serving HTTP ended", "err", err)
					_ = stop.Shutdown(fx.ExitCode(1))
				}
			}()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			if server.Shutdown(ctx) != nil {
				return server.Close() // a browser holds a connection; nothing of ours is lost with it
			}
			return nil
		},
	}
}
