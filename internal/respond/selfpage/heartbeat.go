package selfpage

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// HeartbeatConfig is the section heartbeat: a dead man's switch at somebody else's.
type HeartbeatConfig struct {
	URL      strictyaml.Secret   `yaml:"url"`
	URLFile  string              `yaml:"url_file"`
	Interval strictyaml.Duration `yaml:"interval"` // 30s
}

// SetDefaults beats twice a minute.
func (c *HeartbeatConfig) SetDefaults() { c.Interval = strictyaml.Duration(30 * time.Second) }

// Heartbeat posts to a URL while Tocsin is healthy. When it stops posting, whoever listens raises the alarm.
type Heartbeat struct {
	url      string
	interval time.Duration
	healthy  func() (bool, []Cause)
	client   *http.Client
	log      *slog.Logger
	beats    *prometheus.CounterVec
}

// NewHeartbeat gives nil where no URL is configured. dir is where a relative url_file is looked up.
func NewHeartbeat(c HeartbeatConfig, dir string, healthy func() (bool, []Cause), client *http.Client, log *slog.Logger, reg prometheus.Registerer) (*Heartbeat, error) {
	file := c.URLFile
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	secret, err := strictyaml.ResolveSecret(c.URL, file)
	if err != nil || secret == "" {
		return nil, err
	}
	if u, err := url.Parse(secret.Reveal()); err != nil || u.Host == "" {
		return nil, errors.New("heartbeat: url must be an http(s) address")
	}
	if c.Interval == 0 {
		c.SetDefaults()
	}
	h := &Heartbeat{url: secret.Reveal(), interval: c.Interval.Std(), healthy: healthy, client: client, log: log,
		beats: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tocsin", Name: "heartbeats_total", Help: "Heartbeats by outcome; withheld while Tocsin is unhealthy."}, []string{"outcome"})}
	for _, o := range []string{"sent", "failed", "withheld"} {
		h.beats.WithLabelValues(o)
	}
	if reg != nil {
		reg.MustRegister(h.beats)
	}
	return h, nil
}

// Run beats until ctx ends, the first time at once. A nil Heartbeat does nothing.
func (h *Heartbeat) Run(ctx context.Context) error {
	if h == nil {
		return nil
	}
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	failing := false
	for {
		if ok, bad := h.healthy(); !ok {
			h.beats.WithLabelValues("withheld").Inc()
			h.log.Debug("heartbeat withheld", "causes", bad)
		} else if err := h.beat(ctx); err != nil && ctx.Err() == nil {
			h.beats.WithLabelValues("failed").Inc()
			if !failing {
				h.log.Warn("send heartbeat", "err", err)
			}
			failing = true
		} else if err == nil {
			h.beats.WithLabelValues("sent").Inc()
			failing = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (h *Heartbeat) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(h.interval, 10*time.Second))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, http.NoBody)
	if err != nil {
		return respond.TransportError(err, h.url)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return respond.TransportError(err, h.url)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if se := respond.StatusError(resp.StatusCode, resp.Header, "", h.url); se != nil {
		return se
	}
	return nil
}
