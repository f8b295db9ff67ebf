package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
	"github.com/tocsin-project/tocsin/pipelines"
	"github.com/tocsin-project/tocsin/rules"
)

// reloader puts changed rules, routes, secrets of receivers and the catalogue into force, all or nothing. It does so on
// POST /-/reload and on SIGHUP.
type reloader struct {
	cfg    *Config
	lead   *lead
	health selfpage.Reporter
	logger *slog.Logger
	// began is what the files looked like that only a start reads.
	began map[string]string

	successful prometheus.Gauge
	at         prometheus.Gauge

	mu sync.Mutex // one reload at a time
}

func newReloader(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, l *lead, pager *selfpage.Pager, logger *slog.Logger, reg *prometheus.Registry) *reloader {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tocsin", Subsystem: "config", Name: name, Help: help})
	}
	r := &reloader{
		cfg: c, lead: l, health: pager.From("reload"), logger: logger, began: map[string]string{},
		successful: gauge("last_reload_successful", "1 if the last reload of rules, routes and catalogue succeeded; 0 means that older files are in force."),
		at:         gauge("last_reload_success_timestamp_seconds", "Unix time of the last successful reload, or of the start."),
	}
	reg.MustRegister(r.successful, r.at)
	r.successful.Set(1)
	r.at.SetToCurrentTime()
	r.health.Report(selfpage.RulesUnreadable, true, "")
	for name, f := range r.startOnly() {
		r.began[name] = f()
	}
	background(lc, stop, logger, "reload", func(ctx context.Context) error {
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hup:
				_, _ = r.reload(ctx) // it has told the log
			}
		}
	})
	return r
}

// ServeHTTP answers POST /-/reload as Prometheus does.
func (r *reloader) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	said, err := r.reload(req.Context())
	if err != nil {
		http.Error(w, "failed to reload, what was in force stays so:\n"+err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, strings.Join(said, "\n"))
}

// settle is how long files must stay as they are while they are read: an editor or a copy may be in the middle of one, and
// half a file of rules can look like a whole one with fewer.
const (
	settle      = 250 * time.Millisecond
	settleTries = 8
)

var errUnsettled = errors.New("the files keep changing; reload again when they are all written")

func (r *reloader) reload(ctx context.Context) (said []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	said, err = r.load(ctx)
	if err != nil {
		r.successful.Set(0)
		r.health.Report(selfpage.RulesUnreadable, false, err.Error())
		r.logger.Error("reload failed, what was in force stays so", "err", err)
		return nil, err
	}
	r.successful.Set(1)
	r.at.SetToCurrentTime()
	r.health.Report(selfpage.RulesUnreadable, true, "")
	r.logger.Info("reloaded", "what", strings.Join(said, "; "))
	return said, nil
}

func (r *reloader) load(ctx context.Context) (said []string, err error) {
	var f *Files
	for try := 0; ; try++ {
		before := r.fingerprint()
		f, err = LoadFiles(r.cfg)
		pause(ctx, settle)
		if before == r.fingerprint() {
			break
		}
		if try == settleTries || ctx.Err() != nil {
			return nil, errUnsettled
		}
	}
	if err != nil {
		return nil, err
	}
	all, err := newPlaces(r.cfg, f)
	if err != nil {
		return nil, err
	}
	if _, err := selfpage.Select(all, r.cfg.SelfPage.Receivers); err != nil {
		return nil, err
	}
	old, _ := r.lead.inForce()
	if err := r.lead.reload(f, all); err != nil {
		return nil, err
	}
	said = []string{
		fmt.Sprintf("rules: %d in %d groups, revision %s%s", len(f.Rules.Rules()), len(f.Rules.Groups), f.Rules.Revision, unchanged(old.Rules.Revision == f.Rules.Revision)),
		fmt.Sprintf("catalogue: %d services, revision %s%s", len(f.Catalogue.Services), f.Catalogue.Revision, unchanged(old.Catalogue.Revision == f.Catalogue.Revision)),
		fmt.Sprintf("routes: %d receivers", len(f.Routes.Receivers)),
	}
	for name, hash := range r.startOnly() {
		if hash() != r.began[name] {
			said = append(said, name+" changed: it is read at the start only, restart to use it")
		}
	}
	return said, nil
}

func unchanged(same bool) string {
	if same {
		return " as before"
	}
	return ""
}

// startOnly are files that a reload does not take: rows are a function of the pipeline's revision that Kafka's reservations
// name, and the configuration file makes connections.
func (r *reloader) startOnly() map[string]func() string {
	return map[string]func() string{
		"the configuration file": func() string { return hashFile(r.cfg.file) },
		"pipelines":              func() string { return hashTree(r.cfg.dir(r.cfg.Files.Pipelines, pipelines.FS)) },
	}
}

// fingerprint is what all files that a reload reads look like now.
func (r *reloader) fingerprint() string {
	c := r.cfg
	out := hashTree(c.dir(c.Files.Rules, rules.FS)) + hashTree(c.dir(c.Files.Pipelines, pipelines.FS))
	for _, name := range []string{c.Files.Routes, c.Files.Catalogue} {
		if name != "" {
			out += hashFile(c.path(name))
		}
	}
	return out
}

// hashFile is a file's content, or what keeps it from being read.
func hashFile(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func hashTree(fsys fs.FS) string {
	sum := sha256.New()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		fmt.Fprintf(sum, "%s\x00%d\x00%s", name, len(data), data)
		return err
	})
	if err != nil {
		return err.Error()
	}
	return hex.EncodeToString(sum.Sum(nil))
}
