package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/tocsin-project/tocsin/internal/chlocal"
)

// Options say what a campaign is. Binary, Engine and Dir are required.
type Options struct {
	Seed     uint64
	Faults   int           // to inject
	Events   uint64        // to write
	Duration time.Duration // after it no further fault is injected and nothing more is written
	Broker   string        // "embedded" or "real"
	Members  int           // daemons in the group
	Parallel int           // faults at a time
	// PerRecord is how many spans one record holds.
	PerRecord int
	// Break takes a rule away, to see that the campaign notices: "reservations" or "tokens".
	Break string

	Binary, Engine string // the programs tocsin and chlocal
	Dir            string // of all files; it must be empty
	Out            io.Writer
	Every          time.Duration // of a line of progress
}

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Members, 4)
	def(&o.Parallel, 4)
	def(&o.PerRecord, 300)
	if o.Broker == "" {
		o.Broker = "embedded"
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
}

// campaign is one run.
type campaign struct {
	o        Options
	logger   *slog.Logger
	logFile  *os.File
	gen      *generator
	traps    *traps
	tokens   *tokens
	proxies  []*kafkaProxy
	brokers  []string // as clients are told
	cluster  cluster
	engine   *chlocal.Server
	fronts   []*engineProxy
	members  []*member // the last one comes and goes
	producer *producer
	http     *http.Client // of the campaign's own questions to ClickHouse

	starting sync.RWMutex // held for writing while no member may be started
	cluMu    sync.Mutex   // one fault of brokers at a time
	engMu    sync.Mutex   // and of the engine

	mu       sync.Mutex
	injected map[string]int // faults by kind
	done     int
	failed   []string // what the campaign itself could not do
	restarts int      // of brokers
}

// Run runs a campaign and compares what is stored with the truth. The error is about the campaign: what it found is in the
// report.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.setDefaults()
	c := &campaign{o: o, gen: &generator{seed: o.Seed, perRecord: o.PerRecord}, traps: newTraps(), tokens: &tokens{}, injected: map[string]int{},
		http: &http.Client{Transport: &http.Transport{}}}
	c.traps.lost.reservations, c.traps.lost.tokens = o.Break == "reservations", o.Break == "tokens"
	defer c.close()
	began := time.Now()
	if err := c.up(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Out, "seed %d: %d members, %d broker(s) (%s), %d faults over %d events, at most %s\n", o.Seed, o.Members, c.cluster.Len(), o.Broker, o.Faults, o.Events,
		o.Duration)
	if err := c.storm(ctx); err != nil {
		return nil, err
	}
	r := &Report{Options: o, Storm: time.Since(began)}
	if err := c.calm(ctx, r); err != nil {
		return nil, err
	}
	if err := c.verify(ctx, r); err != nil {
		return nil, err
	}
	r.Took = time.Since(began)
	c.sum(r)
	return r, nil
}

func (c *campaign) sum(r *Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Kinds, r.Faults, r.Events, r.Trouble = c.injected, c.done, c.producer.events(), c.failed
	for _, m := range c.members {
		r.MemberStarts += m.starts
	}
	r.EngineRestarts, r.BrokerRestarts, r.Steps = c.engine.Restarts(), c.restarts, c.traps.seen
}

// up starts everything and makes the topics.
func (c *campaign) up(ctx context.Context) (err error) {
	if c.logFile, err = os.Create(filepath.Join(c.o.Dir, "campaign.log")); err != nil {
		return fmt.Errorf("open the campaign's log: %w", err)
	}
	c.logger = slog.New(slog.NewTextHandler(c.logFile, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := c.startCluster(ctx); err != nil {
		return err
	}
	lib, err := chlocal.Install(ctx, chlocal.InstallOptions{Progress: c.o.Out})
	if err != nil {
		return fmt.Errorf("install ClickHouse: %w", err)
	}
	c.engine, err = chlocal.Start(ctx, chlocal.Options{Binary: c.o.Engine, LibPath: lib, DataDir: filepath.Join(c.o.Dir, "clickhouse"), Logger: c.logger, Restart: true})
	if err != nil {
		return fmt.Errorf("start ClickHouse: %w", err)
	}
	if c.producer, err = newProducer(c.gen, c.brokers, c.logger); err != nil {
		return err
	}
	for stream, n := range map[string]int{spans: 4, gauges: 2, tickets: 2} {
		if err := c.makeTopic(ctx, stream, n); err != nil {
			return err
		}
	}
	for i := range c.o.Members + 1 {
		front, err := newEngineProxy(i, c.engine.Addr(), c.traps, c.tokens)
		if err != nil {
			return err
		}
		c.fronts = append(c.fronts, front)
		m, err := newMember(i, c.o.Dir, c.o.Binary, c.brokers, front.addr(), c.o.Break == "reservations")
		if err != nil {
			return err
		}
		c.members = append(c.members, m)
	}
	return c.startAll()
}

func (c *campaign) startCluster(ctx context.Context) (err error) {
	n := 1
	if c.o.Broker == brokerReal {
		n = realBrokers
	}
	for i := range n {
		p, err := newKafkaProxy(i, c.traps)
		if err != nil {
			return err
		}
		c.proxies = append(c.proxies, p)
		c.brokers = append(c.brokers, p.addr())
	}
	switch c.o.Broker {
	case brokerReal:
		c.cluster, err = startReal(ctx, c.o.Dir, c.proxies)
	case "embedded":
		c.cluster, err = startEmbedded(ctx, c.o.Dir, c.proxies)
	default:
		err = fmt.Errorf("broker %q is neither embedded nor real", c.o.Broker)
	}
	return err
}

// base are the members that are there at the end.
func (c *campaign) base() []*member { return c.members[:c.o.Members] }

func (c *campaign) startAll() error {
	for _, m := range c.base() {
		if err := m.start(); err != nil {
			return err
		}
	}
	return nil
}

// revive starts a member, unless all of them have to be away.
func (c *campaign) revive(m *member) {
	c.starting.RLock()
	defer c.starting.RUnlock()
	if err := m.start(); err != nil {
		c.trouble("%v", err)
	}
}

// trouble is what the campaign could not do; it goes on.
func (c *campaign) trouble(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
}

func (c *campaign) close() {
	for _, m := range c.members {
		m.kill()
	}
	if c.producer != nil {
		c.producer.close()
	}
	for _, p := range c.proxies {
		p.close()
	}
	for _, f := range c.fronts {
		f.close()
	}
	if c.cluster != nil {
		_ = c.cluster.Close()
	}
	c.http.CloseIdleConnections()
	if c.engine != nil {
		_ = c.engine.Stop(context.Background())
	}
	if c.logFile != nil {
		_ = c.logFile.Close()
	}
}

// storm writes and injects until both are done, or the time is up.
func (c *campaign) storm(ctx context.Context) error {
	sctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() { c.progress(sctx) })
	written := make(chan struct{})
	wg.Go(func() {
		defer close(written)
		if err := c.write(sctx); err != nil && sctx.Err() == nil {
			cancel(err)
		}
	})
	c.inject(sctx)
	select {
	case <-written:
	case <-sctx.Done():
	}
	err := context.Cause(sctx)
	cancel(nil)
	wg.Wait()
	return err
}

// write keeps pace with the faults, so that the last one strikes the last events.
func (c *campaign) write(ctx context.Context) error {
	w, r := newWriter(c.gen), rand.New(rand.NewPCG(c.o.Seed, 0x77717465))
	began := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		written := c.producer.events()
		if written >= c.o.Events || c.o.Duration > 0 && time.Since(began) > c.o.Duration {
			return nil
		}
		for ctx.Err() == nil && written > c.allowed(began) {
			pause(ctx, 10*time.Millisecond)
		}
		stream, records := spans, 1+r.IntN(8)
		switch {
		case n%6 == 3:
			stream, records = gauges, 1+r.IntN(3)
		case n%12 == 8:
			stream, records = tickets, 1+r.IntN(3)
		}
		if err := c.producer.write(ctx, w, stream, r.IntN(1<<20), records); err != nil {
			return err
		}
	}
	return nil
}

// allowed is how many events may be written by now.
func (c *campaign) allowed(began time.Time) uint64 {
	c.mu.Lock()
	share := float64(c.done+1) / float64(max(c.o.Faults, 1))
	c.mu.Unlock()
	if c.o.Duration > 0 {
		share = max(share, float64(time.Since(began))/float64(c.o.Duration))
	}
	return uint64(min(share, 1) * float64(c.o.Events))
}

func (c *campaign) progress(ctx context.Context) {
	tick := time.NewTicker(c.o.Every)
	defer tick.Stop()
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.mu.Lock()
			done, starts := c.done, 0
			for _, m := range c.members {
				starts += m.starts
			}
			c.mu.Unlock()
			fmt.Fprintf(c.o.Out, "%5.0f s  %d faults, %d events, %d starts of members, %d of ClickHouse, lag %s\n", time.Since(began).Seconds(), done, c.producer.events(),
				starts, c.engine.Restarts(), c.lag(ctx))
		}
	}
}

// makeTopic makes a topic, or makes it anew.
func (c *campaign) makeTopic(ctx context.Context, stream string, partitions int) error {
	deadline := time.Now().Add(30 * time.Second)
	for unsure := false; ; unsure = true {
		res, err := c.producer.client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{{Topic: stream, NumPartitions: partitions,
			ReplicationFactor: c.cluster.Replication(), ConfigEntries: []kafkago.ConfigEntry{
				{ConfigName: "retention.ms", ConfigValue: "-1"}, {ConfigName: "message.timestamp.after.max.ms", ConfigValue: "9223372036854775807"}}}}})
		if err == nil {
			err = res.Errors[stream]
		}
		if err == nil || unsure && errors.Is(err, kafkago.TopicAlreadyExists) {
			c.producer.begin(stream, partitions)
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("make topic %s: %w", stream, err)
		}
		pause(ctx, retryEvery)
	}
}

var errNotReached = errors.New("not reached")
