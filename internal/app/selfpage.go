package app

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/receivers"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

// selfpageModule is what must work when nothing else does: it depends on the configuration, the routes and their secrets
// alone.
var selfpageModule = fx.Module("selfpage",
	component("selfpage"),
	fx.Provide(newPlaces, newPager, newHeartbeat),
)

// places are the ways out into the world.
type places []respond.Place

func newPlaces(c *Config, f *Files) (places, error) {
	f.Routes.Global.ExternalURL = firstOf(f.Routes.Global.ExternalURL, c.HTTP.External())
	all, err := receivers.Build(f.Routes, receivers.Options{Dir: f.RoutesDir})
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	return all, nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func newPager(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, all places, logger *slog.Logger, reg *prometheus.Registry) (*selfpage.Pager, error) {
	own, err := selfpage.Select(all, c.SelfPage.Receivers)
	if err != nil {
		return nil, err
	}
	if len(own) == 0 {
		logger.Warn("self_page names no receiver: nobody will hear that Tocsin itself is in trouble")
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	p := selfpage.New(selfpage.Options{Config: c.SelfPage, Places: own, Name: host, Logger: logger, Registry: reg})
	watchDisk(lc, stop, c.path(c.Respond.DataDir), p, logger)
	if len(own) > 0 {
		background(lc, stop, logger, "self-page", p.Run)
	}
	return p, nil
}

func newHeartbeat(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, f *Files, p *selfpage.Pager, logger *slog.Logger, reg *prometheus.Registry) (*selfpage.Heartbeat, error) {
	h, err := selfpage.NewHeartbeat(c.Heartbeat, f.RoutesDir, p.Healthy, receivers.Client(), logger, reg)
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	if h != nil {
		background(lc, stop, logger, "heartbeat", h.Run)
	}
	return h, nil
}
