package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const interval = 10 * time.Second

// server is what of Prometheus is needed to judge: a TSDB and rule groups.
type server struct {
	db     *tsdb.DB
	groups []*rules.Group
	series []labels.Labels
	refs   []storage.SeriesRef
	last   int64 // time of the last frame
}

// open puts TSDB, engine and groups together with the defaults of Prometheus' flags.
func open(ctx context.Context, dir string, h *header) (*server, error) {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	registry := prometheus.NewRegistry()
	opts := tsdb.DefaultOptions()
	db, err := tsdb.Open(filepath.Join(dir, "data"), logger, registry, opts, nil)
	if err != nil {
		return nil, fmt.Errorf("open the TSDB: %w", err)
	}
	s := &server{db: db, refs: make([]storage.SeriesRef, len(h.Series))}
	for _, m := range h.Series {
		s.series = append(s.series, labels.FromMap(m))
	}
	p := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: logger, Reg: registry, MaxSamples: 50_000_000, Timeout: 2 * time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: p,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
	m := rules.NewManager(&rules.ManagerOptions{
		Context: ctx, AppendableV2: db, Queryable: db, QueryFunc: rules.EngineQueryFunc(engine, db),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     logger, Registerer: registry, Parser: p,
		OutageTolerance: time.Hour, ForGracePeriod: 10 * time.Minute, ResendDelay: time.Minute,
		MaxConcurrentEvals: int64(h.Concurrency), ConcurrentEvalsEnabled: h.Concurrency > 0,
		DefaultRuleQueryOffset: func() time.Duration { return 0 },
	})
	file := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, []byte(h.Rules), 0o600); err != nil {
		return nil, fmt.Errorf("write the rules: %w", err)
	}
	groups, errs := m.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		return nil, fmt.Errorf("read the rules: %v", errs)
	}
	for _, g := range groups {
		for _, r := range g.Rules() {
			if a, ok := r.(*rules.AlertingRule); ok {
				a.SetRestored(true) // nothing was firing before: from here on as after any start
			}
		}
		s.groups = append(s.groups, g)
	}
	slices.SortFunc(s.groups, func(a, b *rules.Group) int { return slices.Compare([]string{a.Name()}, []string{b.Name()}) })
	return s, nil
}

// reopen closes the TSDB in good order and times how soon another server has evaluated all rules once.
func (s *server) reopen(ctx context.Context, dir string, h *header, r *report) (*server, error) {
	if err := s.db.Close(); err != nil {
		return s, fmt.Errorf("close the TSDB: %w", err)
	}
	runtime.GC()
	last, cpu, wall := s.last, selfCPU(), time.Now()
	again, err := open(ctx, dir, h)
	if err != nil {
		return s, err
	}
	r.OpenCPU, r.OpenWall = selfCPU()-cpu, time.Since(wall).Seconds()
	cpu, wall = selfCPU(), time.Now()
	for _, g := range again.groups {
		g.Eval(ctx, time.UnixMilli(last+1)) // a moment later: results of the last one are stored
	}
	r.FirstCPU, r.FirstWall = selfCPU()-cpu, time.Since(wall).Seconds()
	return again, nil
}

func (s *server) close() { s.db.Close() } //nolint:errcheck // its data is thrown away

// frame appends and evaluates.
func (s *server) frame(ctx context.Context, f *frame) (t tick, err error) {
	if len(f.Values) != len(s.series) {
		return t, fmt.Errorf("a frame has %d values for %d series", len(f.Values), len(s.series))
	}
	s.last = f.Time
	cpu, wall := selfCPU(), time.Now()
	app := s.db.AppenderV2(ctx)
	for i, v := range f.Values {
		if math.IsNaN(v) {
			continue
		}
		if s.refs[i], err = app.Append(s.refs[i], s.series[i], 0, f.Time, v, nil, nil, storage.AOptions{}); err != nil {
			return t, fmt.Errorf("append %s: %w", s.series[i], err)
		}
	}
	if err := app.Commit(); err != nil {
		return t, fmt.Errorf("commit: %w", err)
	}
	t.AppendCPU, t.AppendWall = selfCPU()-cpu, time.Since(wall).Seconds()
	cpu, wall = selfCPU(), time.Now()
	for _, g := range s.groups {
		if !slices.Contains(f.Eval, "*") && !slices.Contains(f.Eval, g.Name()) {
			continue
		}
		g.Eval(ctx, time.UnixMilli(f.Time))
		for _, r := range g.Rules() {
			if err := r.LastError(); err != nil {
				return t, fmt.Errorf("evaluate %s: %w", r.Name(), err)
			}
			if f.Timed {
				if t.Rules == nil {
					t.Rules = map[string]float64{}
				}
				t.Rules[r.Name()] += r.GetEvaluationDuration().Seconds()
			}
		}
	}
	t.EvalCPU, t.EvalWall = selfCPU()-cpu, time.Since(wall).Seconds()
	return t, nil
}

// firing lists the labels of alerts that fire.
func (s *server) firing() (out []map[string]string) {
	for _, g := range s.groups {
		for _, r := range g.AlertingRules() {
			for _, a := range r.ActiveAlerts() {
				if a.State == rules.StateFiring {
					out = append(out, a.Labels.Map())
				}
			}
		}
	}
	return out
}
