package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/outbox"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

// leadModule runs detect and respond, together, on the one process that leads.
var leadModule = fx.Module("lead",
	component("lead"),
	fx.Provide(newOutbox, newCommands, newLead),
)

func newOutbox(lc fx.Lifecycle, c *Config, client *kafka.Client, pager *selfpage.Pager, logger *slog.Logger) (*outbox.Mirror, error) {
	wal, err := outbox.OpenWAL(c.path(c.Respond.DataDir))
	if err != nil {
		return nil, fmt.Errorf("respond: data_dir: %w", err)
	}
	m := outbox.NewMirror(wal, outboxTopic{client.NewCompacted(c.Kafka.OutboxTopic)}, respond.Newer, logger)
	_ = pager // Kafka being down is reported by its own watch; the local file answers meanwhile
	lc.Append(fx.StopHook(m.Close))
	return m, nil
}

// lead owns the two loops while this process leads.
type lead struct {
	cfg      *Config
	files    *Files
	timeline *clickhouse.Timeline
	store    *clickhouse.Store
	client   *kafka.Client
	log      *clickhouse.IncidentLog
	box      *outbox.Mirror
	places   places
	commands *commands
	health   selfpage.Reporter
	logger   *slog.Logger
	version  version
	detectM  *detect.Metrics
	respondM *respond.Metrics

	mu     sync.Mutex
	may    bool
	loop   *detect.Loop // nil while another process leads, as is the next
	answer *respond.Loop
}

type leadParts struct {
	fx.In
	Config   *Config
	Files    *Files
	Client   *kafka.Client
	Timeline *clickhouse.Timeline
	Store    *clickhouse.Store
	Log      *clickhouse.IncidentLog
	Box      *outbox.Mirror
	Places   places
	Commands *commands
	Schema   *schema
	Topics   *topics
	Pager    *selfpage.Pager
	Version  version
	Registry *prometheus.Registry
	Logger   *slog.Logger
}

func newLead(lc fx.Lifecycle, stop fx.Shutdowner, p leadParts) *lead {
	l := &lead{
		cfg: p.Config, files: p.Files, timeline: p.Timeline, store: p.Store, client: p.Client, log: p.Log, box: p.Box, places: p.Places, commands: p.Commands,
		health: p.Pager.From("lead"), logger: p.Logger, version: p.Version,
		detectM: detect.NewMetrics(p.Registry), respondM: respond.NewMetrics(p.Registry),
	}
	background(lc, stop, p.Logger, "detect and respond", func(ctx context.Context) error {
		if !p.Schema.wait(ctx) {
			return nil
		}
		return l.run(ctx)
	})
	background(lc, stop, p.Logger, "election", func(ctx context.Context) error {
		if !p.Topics.wait(ctx) {
			return nil
		}
		return l.elect(ctx, p.Client)
	})
	background(lc, stop, p.Logger, "detect health", l.watch)
	return l
}

// elect follows the group of the commands topic: who is assigned its partition may try to lead. That decides only who
// tries; what fences is the epoch in ClickHouse. Losing touch with Kafka is no reason to stop, because pages that are
// due must still go out: only a generation that gives the partition to another ends it.
func (l *lead) elect(ctx context.Context, client *kafka.Client) error {
	c := &l.cfg.Kafka
	g, err := client.NewGroup(kafka.GroupConfig{
		ID: c.Group + ".lead", Topics: []string{c.CommandsTopic}, SessionTimeout: c.SessionTimeout.Std(), RebalanceTimeout: c.RebalanceTimeout.Std(),
	})
	if err != nil {
		return fmt.Errorf("election: %w", err)
	}
	return g.Run(ctx, func(ctx context.Context, gen kafka.Generation) error {
		l.mayLead(slices.Contains(gen.Assigned[c.CommandsTopic], 0))
		<-ctx.Done()
		return nil
	})
}

func (l *lead) mayLead(v bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v != l.may {
		l.logger.Info("election", "may_lead", v)
	}
	l.may = v
}

func (l *lead) leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.may && l.loop != nil && l.loop.Health().Leading
}

// Health is the detector's, or nothing while another process leads.
func (l *lead) Health() detect.Health {
	l.mu.Lock()
	loop := l.loop
	l.mu.Unlock()
	if loop == nil {
		return detect.Health{}
	}
	return loop.Health()
}

const (
	electionPoll = 200 * time.Millisecond
	// afterLoss keeps two processes that both believe they may lead from taking it from each other without end.
	afterLoss = 5 * time.Second
)

// run leads whenever it may.
func (l *lead) run(ctx context.Context) error {
	for ctx.Err() == nil {
		l.mu.Lock()
		may := l.may
		l.mu.Unlock()
		wait := electionPoll
		if may {
			err := l.term(ctx)
			if err != nil && !errors.Is(err, detect.ErrSuperseded) {
				return err
			}
			if err != nil {
				l.logger.Warn("another process has taken the lead", "err", err)
				wait = afterLoss
			}
		}
		pause(ctx, wait)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// term runs both loops until the lead is lost. They begin anew each time from what is stored: another process may have
// gone on in between.
func (l *lead) term(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !l.expect(ctx) {
		return nil
	}
	owner, err := os.Hostname()
	if err != nil {
		owner = "unknown"
	}
	loop := detect.NewLoop(l.timeline, detect.LoopConfig{
		Detector: detect.Config{Rules: l.files.Rules, Catalogue: l.files.Catalogue, ExternalLabels: l.cfg.ExternalLabels},
		Owner:    owner, Binary: string(l.version), Poll: l.cfg.Detect.Poll.Std(), Hold: l.cfg.Detect.Hold.Std(),
		Commands: l.commands, Logger: l.logger.With("component", "detect"), Metrics: l.detectM,
	})
	answer, err := respond.New(respond.Options{
		Log: l.log, Routes: l.files.Routes, Places: l.places, Store: l.box, Settings: l.cfg.Respond.Settings, Poll: l.cfg.Respond.Poll.Std(),
		Lead: l.leading, Health: l.respondHealth,
		Logger: l.logger.With("component", "respond"), Metrics: l.respondM,
	})
	if err != nil {
		return err
	}
	l.setLoops(loop, answer)
	defer l.rest(respondCauses)
	defer l.setLoops(nil, nil)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer cancel()
		return loop.Run(ctx)
	})
	g.Go(func() error { return answer.Run(ctx) })
	g.Go(func() error {
		for ctx.Err() == nil {
			l.mu.Lock()
			may := l.may
			l.mu.Unlock()
			if !may {
				cancel()
			}
			pause(ctx, electionPoll)
		}
		return nil
	})
	return g.Wait()
}

// expect tells the ledger which partitions there are before anything is judged, and is false when ctx ended first.
func (l *lead) expect(ctx context.Context) bool {
	for ctx.Err() == nil {
		err := l.expectOnce(ctx)
		if err == nil {
			return true
		}
		l.logger.Warn("cannot tell which partitions there are, trying on", "err", err)
		pause(ctx, time.Second)
	}
	return false
}

func (l *lead) expectOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	there, err := l.client.Topics(ctx)
	if err != nil {
		return err
	}
	for _, p := range l.files.Pipelines.Pipelines {
		for _, topic := range p.AllTopics() {
			if !slices.Contains(there, topic) {
				continue
			}
			partitions, err := l.client.Partitions(ctx, topic)
			if err != nil {
				return err
			}
			if err := l.store.Expect(ctx, p.Stream, topic, partitions[topic]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lead) setLoops(loop *detect.Loop, answer *respond.Loop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loop, l.answer = loop, answer
}

// records are the outbox's while this process leads.
func (l *lead) records(incidentID string) ([]respond.Record, bool) {
	l.mu.Lock()
	answer := l.answer
	l.mu.Unlock()
	if answer == nil {
		return nil, false
	}
	return answer.Records(incidentID), true
}
