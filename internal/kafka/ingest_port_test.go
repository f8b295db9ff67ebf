package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/pipeline"
)

// startIngest runs one process of the ingest loop on a real broker with a store in memory.
func startIngest(t *testing.T, addr, topic string, store *ingesttest.Store) (loop *ingest.Loop, process *ingesttest.Process) {
	t.Helper()
	p, err := pipeline.Parse("p.yaml", []byte("name: g\ntopic: "+topic+"\nstream: gauges\ndecoder: json\n"))
	must(t, err)
	source, err := decode.Source(p)
	must(t, err)
	c := newClient(t, addr)
	g, err := c.NewGroup(kafka.GroupConfig{ID: "ingest-" + topic, Topics: []string{topic}, SessionTimeout: 2 * time.Second,
		Heartbeat: 50 * time.Millisecond, RebalanceTimeout: 2 * time.Second, RejoinBackoff: 20 * time.Millisecond})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	process = ingesttest.NewProcess(1, ingesttest.Chaos{}, cancel)
	var cfg ingest.Config
	cfg.SetDefaults()
	cfg.Start, cfg.InsertsPerSecond, cfg.FetchBytes = ingest.Start{Beginning: true}, 100, 4<<10
	cfg.MinLinger = 10e6
	loop, err = ingest.New(cfg, ingest.Deps{Log: kafka.IngestLog(c), Group: kafka.IngestGroup(g), Store: store.Client(process), Sources: []ingest.Source{source},
		Clock: ingest.NewClock(ingest.ClockWall, nil), Logger: slog.New(slog.DiscardHandler), Metrics: ingest.NewMetrics(nil)})
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return loop, process
}

func TestIngestCountsEveryRecordOnce(t *testing.T) {
	const partitions, records = 3, 3000
	addr, topic := broker(t, partitions)
	store := ingesttest.NewStore()
	producer := newClient(t, addr).NewProducer()
	produce := func(from, to int) {
		for i := from; i < to; i += 100 {
			batch := make([]kafka.Record, 100)
			for j := range batch {
				batch[j].Value = fmt.Appendf(nil, `{"time":%d,"resource":"r","metric":"m","value":%d}`, time.Now().UnixMilli(), i+j)
			}
			must(t, producer.Produce(t.Context(), topic, int32(i/100%partitions), batch...))
		}
	}
	counts := func() (seen, doubled int) {
		times := map[int]int{}
		for _, b := range store.Batches() {
			for _, g := range b.Gauges {
				times[int(g.Value)]++
			}
		}
		for _, n := range times {
			doubled += n - 1
		}
		return len(times), doubled
	}
	produce(0, records/3)
	_, first := startIngest(t, addr, topic, store)
	eventually(t, "records of the first process", func() bool { n, _ := counts(); return n > 100 })
	second, _ := startIngest(t, addr, topic, store)
	produce(records/3, 2*records/3)
	eventually(t, "partitions shared", func() bool { return len(second.Health().Partitions) > 0 })
	first.Kill() // its member stops beating, and its store takes nothing any more
	produce(2*records/3, records)
	eventually(t, "all records", func() bool { n, _ := counts(); return n == records })
	eventually(t, "no lag", func() bool {
		h := second.Health()
		for _, p := range h.Partitions {
			if p.Lag != 0 || !p.CaughtUp {
				return false
			}
		}
		return len(h.Partitions) == partitions
	})
	if n, doubled := counts(); doubled != 0 {
		t.Errorf("%d records, %d doubled", n, doubled)
	}
	eventually(t, "the idle commit", func() bool {
		for p := range int32(partitions) {
			offset, _, err := newClient(t, addr).FetchCommitted(t.Context(), "ingest-"+topic, topic, p)
			if err != nil || offset != records/partitions {
				return false
			}
		}
		return true
	})
}

func TestIngestSeesOffsetsOutOfRange(t *testing.T) {
	addr, topic := broker(t, 1)
	log := kafka.IngestLog(newClient(t, addr))
	tp := ingest.TopicPartition{Topic: topic}
	_, err := log.Fetch(t.Context(), tp, 7, 1000, 0)
	if !errors.Is(err, ingest.ErrOutOfRange) {
		t.Errorf("got %v", err)
	}
	start, end, err := log.Bounds(t.Context(), tp)
	if err != nil || start != 0 || end != 0 {
		t.Errorf("bounds %d, %d, %v", start, end, err)
	}
}
