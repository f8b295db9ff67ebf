package ingest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source makes a pipeline of native events, or of what the further lines say.
func source(t testing.TB, stream, topic, decoder, more string) ingest.Source {
	t.Helper()
	p, err := pipeline.Parse("test.yaml", []byte(fmt.Sprintf("name: %s\ntopic: %s\nstream: %s\ndecoder: %s\n%s", topic, topic, stream, decoder, more)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := decode.Source(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func defaults(change func(*ingest.Config)) ingest.Config {
	var c ingest.Config
	c.SetDefaults()
	c.Start = ingest.Start{Beginning: true}
	if change != nil {
		change(&c)
	}
	return c
}

// world is a broker, a store and processes that read from one into the other.
type world struct {
	t       *testing.T
	kafka   *ingesttest.Kafka
	store   *ingesttest.Store
	sources []ingest.Source
	cfg     ingest.Config
	values  ingest.Values
}

// withGauges is a world of one topic with one partition, which holds n records.
func withGauges(t *testing.T, n int) *world {
	w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
	w.kafka.CreateTopic("g", 1)
	w.produce("g", 0, n)
	return w
}

func newWorld(t *testing.T, change func(*ingest.Config), sources ...ingest.Source) *world {
	w := &world{t: t, kafka: ingesttest.NewKafka(), store: ingesttest.NewStore(), sources: sources, cfg: defaults(change)}
	return w
}

type running struct {
	loop    *ingest.Loop
	process *ingesttest.Process
	cancel  context.CancelFunc
	done    chan error
}

// start runs one process. Logs are kept only where chaos cannot make two write at once.
func (w *world) start(seed uint64, chaos ingesttest.Chaos, change func(*ingest.Loop)) *running {
	w.t.Helper()
	return w.startWith(seed, chaos, change, func(l ingest.Log) ingest.Log { return l })
}

// startOn runs one process on another log than the broker's own.
func (w *world) startOn(seed uint64, log func(ingest.Log) ingest.Log) *running {
	w.t.Helper()
	return w.startWith(seed, peace, nil, log)
}

func (w *world) startWith(seed uint64, chaos ingesttest.Chaos, change func(*ingest.Loop), log func(ingest.Log) ingest.Log) *running {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := ingesttest.NewProcess(seed, chaos, cancel)
	loop, err := ingest.New(w.cfg, ingest.Deps{
		Log: log(w.kafka.Log(p)), Group: w.kafka.Group(p), Store: w.store.Client(p), Sources: w.sources,
		Clock: ingest.NewClock(w.cfg.Clock, nil), Logger: slog.New(slog.DiscardHandler), Metrics: ingest.NewMetrics(nil), Values: w.values,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if change != nil {
		change(loop)
	}
	r := &running{loop: loop, process: p, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- loop.Run(ctx) }()
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Errorf("run: %v", err)
	}
}

// advance lets the time of a synctest bubble pass; outside of one it would wait for real.
func advance(d time.Duration) { <-time.After(d) }

func gauge(at time.Time, id int) []byte {
	return fmt.Appendf(nil, `{"time":%d,"resource":"r","metric":"m","value":%d}`, at.UnixMilli(), id)
}

func request(at time.Time, operation, outcome string) []byte {
	return fmt.Appendf(nil, `{"time":%d,"service":"s","operation":%q,"outcome":%q}`, at.UnixMilli(), operation, outcome)
}
