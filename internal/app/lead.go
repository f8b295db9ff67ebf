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
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

// leadModule runs detect and respond, together, on the one process that leads.
var leadModule = fx.Module("lead",
	component("lead"),
	fx.Provide(newOutbox, newSilences, newCommands, newLead, newReloader),
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
	schema   *schema
	silences *silence.Store
	silenced silencesRead
	timeline *clickhouse.Timeline
	querier  *clickhouse.Querier
	store    *clickhouse.Store
	client   *kafka.Client
	log      *clickhouse.IncidentLog
	box      *outbox.Mirror
	commands *commands
	health   selfpage.Reporter
	logger   *slog.Logger
	version  version
	detectM  *detect.Metrics
	respondM *respond.Metrics

	mu     sync.Mutex
	files  *Files // what is in force
	places places
	may    bool
	member bool         // of a generation that lives and gives us the partition
	since  time.Time    // of this term
	loop   *detect.Loop // nil while another process leads, as is the next
	answer *respond.Loop
}

type leadParts struct {
	fx.In
	Config   *Config
	Files    *Files
	Client   *kafka.Client
	Timeline *clickhouse.Timeline
	Querier  *clickhouse.Querier
	Store    *clickhouse.Store
	Log      *clickhouse.IncidentLog
	Box      *outbox.Mirror
	Places   places
	Commands *commands
	Schema   *schema
	Topics   *topics
	Silences *silence.Store
	Silenced silencesRead
	Copies   *clickhouse.Silences
	Pager    *selfpage.Pager
	Version  version
	Registry *prometheus.Registry
	Logger   *slog.Logger
}

func newLead(lc fx.Lifecycle, stop fx.Shutdowner, p leadParts) *lead {
	l := &lead{
		cfg: p.Config, files: p.Files, schema: p.Schema, silences: p.Silences, silenced: p.Silenced, timeline: p.Timeline, querier: p.Querier, store: p.Store, client: p.Client, log: p.Log, box: p.Box, places: p.Places, commands: p.Commands,
		health: p.Pager.From("lead"), logger: p.Logger, version: p.Version,
		detectM: detect.NewMetrics(p.Registry), respondM: respond.NewMetrics(p.Registry),
	}
	p.Silences.OnChange(l.silence)
	background(lc, stop, p.Logger, "detect and respond", l.run)
	background(lc, stop, p.Logger, "silences copy", func(ctx context.Context) error {
		return copySilences(ctx, p.Schema, p.Silences, p.Copies, p.Logger)
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
		Claim: l.claim,
	})
	if err != nil {
		return fmt.Errorf("election: %w", err)
	}
	return g.Run(ctx, func(ctx context.Context, gen kafka.Generation) error {
		l.mayLead(slices.Contains(gen.Assigned[c.CommandsTopic], 0))
		<-ctx.Done()
		l.mu.Lock()
		l.member = false
		l.mu.Unlock()
		return nil
	})
}

// claim keeps the lead where it is while another process joins or leaves: whoever takes over begins with a pause. Who is
// blocked gives it up, another may be better off.
func (l *lead) claim() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.may || l.loop == nil {
		return 0
	}
	h := l.loop.Health()
	if !h.Leading || !h.BlockedSince.IsZero() && time.Since(h.BlockedSince) > giveUpAfter {
		return 0
	}
	return h.Epoch
}

func (l *lead) mayLead(v bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.member = v
	if v != l.may {
		l.logger.Info("election", "may_lead", v)
	}
	l.may = v
}

// leading tells whether this process may send. What fences is the epoch. Where none can be had because ClickHouse does not
// answer, the group's word must do: what was decided before is due, and waiting for a database with a page in hand is worse
// than a message that another process, which has lost touch with Kafka, might send as well.
func (l *lead) leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := time.Since(l.since) >= epochGrace
	select {
	case <-l.silenced:
	default:
		if !late {
			return false // a silence of another process could be broken
		}
	}
	switch {
	case !l.may || l.answer == nil:
		return false
	case l.loop != nil && l.loop.Health().Leading:
		return true
	}
	return l.member && late
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
	// epochGrace is how long the epoch is waited for before pages go out without one. A process before us has sent its last
	// by then.
	epochGrace = 15 * time.Second
	// giveUpAfter is how long a detector may be blocked before another process may have the lead.
	giveUpAfter = time.Minute
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
// gone on in between. Respond does not wait for the database: what the outbox holds is sent without it.
func (l *lead) term(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, err := l.begin()
	if err != nil {
		return err
	}
	defer l.rest(respondCauses)
	defer l.end()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer cancel()
		return l.detect(ctx)
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

// begin makes the respond loop of a term.
func (l *lead) begin() (*respond.Loop, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, err := respond.New(respond.Options{
		Log: afterSchema{l.log, l.schema}, Routes: l.files.Routes, Places: l.places, Store: l.box, Settings: l.cfg.Respond.Settings, Poll: l.cfg.Respond.Poll.Std(),
		Lead: l.leading, Health: l.respondHealth,
		Logger: l.logger.With("component", "respond"), Metrics: l.respondM,
	})
	if err != nil {
		return nil, err
	}
	answer.SetSilences(l.silences.InForce())
	l.answer, l.since = answer, time.Now()
	return answer, nil
}

func (l *lead) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loop, l.answer = nil, nil
}

// detect runs the detector once there is something to detect on.
func (l *lead) detect(ctx context.Context) error {
	if !l.schema.wait(ctx) || !l.expect(ctx) {
		return nil
	}
	owner, err := os.Hostname()
	if err != nil {
		owner = "unknown"
	}
	l.mu.Lock()
	loop := detect.NewLoop(l.timeline, detect.LoopConfig{
		Detector: l.detectorConfig(), Owner: owner, Binary: binary(l.version), Poll: l.cfg.Detect.Poll.Std(), Hold: l.cfg.Detect.Hold.Std(),
		Commands: l.commands, Querier: l.querier, Logger: l.logger.With("component", "detect"), Metrics: l.detectM,
	})
	l.loop = loop
	l.mu.Unlock()
	return loop.Run(ctx)
}

func (l *lead) detectorConfig() detect.Config {
	return detect.Config{Rules: l.files.Rules, Catalogue: l.files.Catalogue, ExternalLabels: l.cfg.ExternalLabels}
}

// inForce are the files and places that count now.
func (l *lead) inForce() (*Files, places) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files, l.places
}

// reload takes other files and places: the detector at its next tick, respond at once.
func (l *lead) reload(f *Files, all places) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer != nil {
		if err := l.answer.SetRoutes(f.Routes, all); err != nil {
			return err
		}
	}
	l.files, l.places = f, all
	if l.loop != nil {
		l.loop.Reload(l.detectorConfig())
	}
	return nil
}

// silence passes on which silences there are.
func (l *lead) silence(list []respond.Silence) {
	l.mu.Lock()
	answer := l.answer
	l.mu.Unlock()
	if answer != nil {
		answer.SetSilences(list)
	}
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
	files, _ := l.inForce()
	for _, p := range files.Pipelines.Pipelines {
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
