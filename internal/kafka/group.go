package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// GroupConfig is a consumer group and how this process takes part in it.
type GroupConfig struct {
	ID                string        `yaml:"id"`
	Topics            []string      `yaml:"topics"`
	SessionTimeout    time.Duration `yaml:"session_timeout"`   // After it without a heartbeat, partitions go to others. Default 10 s.
	Heartbeat         time.Duration `yaml:"heartbeat"`         // Default a third of the session.
	RebalanceTimeout  time.Duration `yaml:"rebalance_timeout"` // How long a rebalance waits for a busy member. Default 30 s.
	RejoinBackoff     time.Duration `yaml:"rejoin_backoff"`    // Between tries to join, and before a member joins anew. Default 1 s.
	PartitionInterval time.Duration `yaml:"-"`                 // How often new partitions are looked for. Default 10 s.
	// Claim, where it is set, makes the group give all partitions to the member that claims most. It is asked at each rebalance.
	Claim func() uint64 `yaml:"-"`
}

func (c *GroupConfig) setDefaults() {
	setDefault(&c.SessionTimeout, 10*time.Second)
	setDefault(&c.Heartbeat, c.SessionTimeout/3)
	setDefault(&c.RebalanceTimeout, 30*time.Second)
	setDefault(&c.RejoinBackoff, time.Second)
	setDefault(&c.PartitionInterval, 10*time.Second)
}

// Generation is one member's share of a group from one rebalance to the next. It is a value; copies share the poison.
type Generation struct {
	GroupID  string
	ID       int32
	MemberID string
	Assigned map[string][]int32 // Partitions by topic, sorted. Topics without partitions are not in it.

	state *generationState
}

type generationState struct {
	poisoned atomic.Bool
	end      context.CancelCauseFunc
}

// Poisoned tells whether a commit of this generation ended without a known outcome.
func (g Generation) Poisoned() bool { return g.state != nil && g.state.poisoned.Load() }

func (g Generation) poison() {
	if g.state != nil {
		g.state.poisoned.Store(true)
		g.state.end(ErrPoisoned)
	}
}

// Group is this process' membership in a consumer group.
type Group struct {
	client *Client
	cfg    GroupConfig
	log    *slog.Logger
}

// NewGroup checks the configuration; nothing is joined before Run.
func (c *Client) NewGroup(cfg GroupConfig) (*Group, error) {
	cfg.setDefaults()
	var errs []error
	if cfg.ID == "" {
		errs = append(errs, errors.New("consumer group: id is missing"))
	}
	if len(cfg.Topics) == 0 || slices.Contains(cfg.Topics, "") {
		errs = append(errs, errors.New("consumer group: topics are missing"))
	}
	if cfg.Heartbeat >= cfg.SessionTimeout {
		errs = append(errs, fmt.Errorf("consumer group: heartbeat %s is not below session_timeout %s", cfg.Heartbeat,
			cfg.SessionTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Group{client: c, cfg: cfg, log: c.log.With("group", cfg.ID)}, nil
}

const (
	causePoisoned = "poisoned"
	causeReturned = "returned"

	leaveGrace = 2 * time.Second // For a member to leave in order before its connections are broken.
)

// Run takes part in the group until ctx ends, and returns nil then. For each generation it calls fn once, also when no
// partition is assigned; never two at a time. fn's ctx ends when the generation does, by a rebalance, a lost
// coordinator, a poisoned commit or the end of Run's ctx; fn must return soon after, because the rebalance waits for it.
//
// When fn returns ErrPoisoned, or a commit of its generation had an unknown outcome, or fn returns while its generation
// still lives, the member leaves the group and joins anew under another member id. Ending the generation only would not
// do: a follower that joins again gets the same generation number, under which a delayed commit is still accepted.
//
// Partition counts are watched. Topics that do not exist yet are read once they do; the others are not kept waiting.
func (g *Group) Run(ctx context.Context, fn func(ctx context.Context, gen Generation) error) error {
	for {
		topics := g.present(ctx)
		if len(topics) == 0 {
			return nil
		}
		mctx, leave := context.WithCancel(ctx)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			g.watchMissing(mctx, topics, leave)
		}()
		g.member(mctx, topics, fn)
		leave()
		<-stopped
		pause(ctx, g.cfg.RejoinBackoff)
	}
}

// present gives the topics that exist, waiting for the first of them, and nothing when ctx ended before. A topic that
// nobody has made yet must not keep the others from being read; joining with it would spin, because the partition watch
// ends a generation at once whose topic is unknown.
func (g *Group) present(ctx context.Context) []string {
	logged := false
	for ctx.Err() == nil {
		topics, err := g.existing(ctx)
		if len(topics) > 0 {
			missing := slices.DeleteFunc(slices.Clone(g.cfg.Topics), func(t string) bool { return slices.Contains(topics, t) })
			if len(missing) > 0 {
				g.log.Warn("some topics do not exist yet; the others are read", "read", topics, "missing", missing)
			}
			return topics
		}
		if !logged && ctx.Err() == nil {
			g.log.Warn("consumer group waits for its topics", "topics", g.cfg.Topics, "err", err)
			logged = true
		}
		pause(ctx, g.cfg.RejoinBackoff)
	}
	return nil
}

func (g *Group) existing(ctx context.Context) ([]string, error) {
	all, err := g.client.Topics(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(g.cfg.Topics), func(t string) bool { return !slices.Contains(all, t) }), nil
}

// watchMissing ends a membership when a topic has come to exist that it does not read.
func (g *Group) watchMissing(ctx context.Context, reads []string, leave func()) {
	if len(reads) == len(g.cfg.Topics) {
		return
	}
	for ctx.Err() == nil {
		pause(ctx, g.cfg.PartitionInterval)
		if now, err := g.existing(ctx); err == nil && len(now) > len(reads) {
			g.log.Info("a topic has come to exist; the member joins anew to read it", "topics", now)
			leave()
			return
		}
	}
}

// member is one membership, from joining to leaving. It returns after having left.
func (g *Group) member(ctx context.Context, topics []string, fn func(context.Context, Generation) error) {
	var conns connSet
	cg, err := kafka.NewConsumerGroup(g.config(topics, &conns))
	if err != nil {
		// Only a mistake in GroupConfig can do this, and NewGroup has looked for those.
		g.log.Error("cannot join consumer group", "err", err)
		return
	}
	m := &member{group: g, cg: cg, conns: &conns, fn: fn, left: make(chan struct{})}
	defer m.leave(ctx)
	joinFailed := false
	for ctx.Err() == nil {
		gen, err := cg.Next(ctx)
		switch {
		case errors.Is(err, kafka.ErrGroupClosed), ctx.Err() != nil:
			return
		case err != nil:
			// kafka-go pauses before it tries again; a rebalance that overtook us is no failure.
			if !errors.Is(err, kafka.RebalanceInProgress) {
				err = g.client.fail(opJoin, g.cfg.ID, -1, err)
				if !joinFailed {
					g.log.Warn("cannot join consumer group, trying on", "err", err)
				}
				joinFailed = true
			}
			continue
		}
		joinFailed = false
		began := time.Now()
		if !m.generation(ctx, gen) {
			return
		}
		if time.Since(began) < g.cfg.RejoinBackoff {
			pause(ctx, g.cfg.RejoinBackoff/4) // A group whose generations end at once must not spin.
		}
	}
}

func (g *Group) config(topics []string, conns *connSet) kafka.ConsumerGroupConfig {
	c := g.client
	return kafka.ConsumerGroupConfig{
		ID:      g.cfg.ID,
		Brokers: c.cfg.Brokers,
		Topics:  topics,
		Dialer: &kafka.Dialer{
			ClientID:      c.cfg.ClientID,
			Timeout:       c.cfg.DialTimeout,
			DialFunc:      conns.dialer(c.cfg.DialTimeout),
			TLS:           c.transport.TLS,
			SASLMechanism: c.transport.SASL,
		},
		HeartbeatInterval:      g.cfg.Heartbeat,
		SessionTimeout:         g.cfg.SessionTimeout,
		RebalanceTimeout:       g.cfg.RebalanceTimeout,
		JoinGroupBackoff:       g.cfg.RejoinBackoff,
		Timeout:                c.cfg.RequestTimeout,
		WatchPartitionChanges:  true,
		GroupBalancers:         g.cfg.balancers(),
		PartitionWatchInterval: g.cfg.PartitionInterval,
		ErrorLogger:            kafka.LoggerFunc(func(format string, args ...any) { g.log.Debug(fmt.Sprintf(format, args...)) }),
	}
}

type member struct {
	group *Group
	cg    *kafka.ConsumerGroup
	conns *connSet
	fn    func(context.Context, Generation) error
	left  chan struct{}
	going atomic.Bool
}

// generation runs fn for one generation and tells whether the membership goes on.
func (m *member) generation(ctx context.Context, kgen *kafka.Generation) bool {
	gctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	gen := Generation{GroupID: kgen.GroupID, ID: kgen.ID, MemberID: kgen.MemberID, Assigned: map[string][]int32{},
		state: &generationState{end: end}}
	for topic, ps := range kgen.Assignments {
		for _, p := range ps {
			gen.Assigned[topic] = append(gen.Assigned[topic], int32(p.ID))
		}
		slices.Sort(gen.Assigned[topic])
	}
	m.group.client.metrics.generations.Inc()
	m.group.log.Info("consumer group generation begins", "generation", gen.ID, "member", gen.MemberID,
		"partitions", gen.Assigned)
	goesOn := make(chan bool, 1)
	kgen.Start(func(kctx context.Context) {
		stop := context.AfterFunc(kctx, func() { end(kafka.ErrGenerationEnded) })
		err := m.fn(gctx, gen)
		stop()
		if m.keeps(ctx, kctx, gen, err) {
			goesOn <- true
			return
		}
		// The group is told to close before this function returns, because kafka-go answers the return of a function by
		// joining again at once; its closing ends kctx.
		m.startLeaving()
		<-kctx.Done()
		goesOn <- false
	})
	return <-goesOn
}

// keeps decides whether a member may join the next generation under its id.
func (m *member) keeps(ctx, kctx context.Context, gen Generation, err error) bool {
	g := m.group
	switch {
	case errors.Is(err, ErrPoisoned) || gen.Poisoned():
		g.client.metrics.rejoins.WithLabelValues(causePoisoned).Inc()
		g.log.Warn("consumer group member leaves after a commit of unknown outcome", "generation", gen.ID, "err", err)
		return false
	case ctx.Err() != nil:
		return false
	case kctx.Err() != nil:
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrFenced) {
			g.log.Warn("consumer ended with an error at the end of its generation", "generation", gen.ID, "err", err)
		}
		return true
	default:
		g.client.metrics.rejoins.WithLabelValues(causeReturned).Inc()
		g.log.Warn("consumer gave up its partitions; the member leaves and joins anew", "generation", gen.ID, "err", err)
		return false
	}
}

func (m *member) startLeaving() {
	if m.going.CompareAndSwap(false, true) {
		go func() {
			defer close(m.left)
			_ = m.cg.Close() // Always nil; it waits for the member to have left.
		}()
	}
}

// leave returns when nothing of the membership runs any more. That can take a rebalance, if the member is just joining;
// when ctx has ended, its connections are broken after a grace instead, and the group drops it when its session ends.
func (m *member) leave(ctx context.Context) {
	m.startLeaving()
	select {
	case <-m.left:
		return
	case <-ctx.Done():
	}
	grace := time.NewTimer(leaveGrace)
	defer grace.Stop()
	select {
	case <-m.left:
	case <-grace.C:
		m.conns.closeAll()
		<-m.left
	}
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
