package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/tocsin-project/tocsin/internal/kafka"
)

// life is one topic from its making to its end: what stands at each offset of each partition.
type life struct {
	stream  string
	number  uint32
	ended   bool
	entries [][]entry // by partition
}

// producer writes the records of all streams, one partition at a time, and knows what the logs hold: by the brokers'
// acknowledgements, and where one got lost by reading the log. So a record that was written twice counts twice.
type producer struct {
	gen    *generator
	client *kafkago.Client
	reader *kafka.Client
	log    *slog.Logger

	locks map[string]*sync.Mutex // by stream: whoever writes, or changes the topic

	mu    sync.Mutex
	lives map[string][]*life
	next  map[string]uint64 // id of the next record
	count uint64            // events in records that were written, dead letters among them
}

func newProducer(gen *generator, brokers []string, log *slog.Logger) (*producer, error) {
	cfg := kafka.Config{Brokers: brokers, ClientID: "generator", MetadataTTL: time.Second, RequestTimeout: 10 * time.Second}
	cfg.SetDefaults()
	reader, err := kafka.NewClient(cfg, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	p := &producer{gen: gen, reader: reader, log: log, locks: map[string]*sync.Mutex{}, lives: map[string][]*life{}, next: map[string]uint64{},
		client: &kafkago.Client{Addr: kafkago.TCP(brokers...), Timeout: 10 * time.Second,
			Transport: &kafkago.Transport{ClientID: "generator", MetadataTTL: time.Second, DialTimeout: 2 * time.Second}}}
	for _, s := range streams {
		p.locks[s] = &sync.Mutex{}
	}
	return p, nil
}

func (p *producer) close() {
	p.reader.Close()
	p.client.Transport.(*kafkago.Transport).CloseIdleConnections()
}

// last is the life that a stream's topic has now.
func (p *producer) last(stream string) *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.lives[stream]
	return all[len(all)-1]
}

func (p *producer) events() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// begin notes a topic that has just been made.
func (p *producer) begin(stream string, partitions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.lives[stream])
	if n > 0 {
		p.lives[stream][n-1].ended = true
	}
	p.lives[stream] = append(p.lives[stream], &life{stream: stream, number: uint32(n), entries: make([][]entry, partitions)})
}

func (p *producer) grow(stream string, partitions int) {
	l := p.last(stream)
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(l.entries) < partitions {
		l.entries = append(l.entries, nil)
	}
}

// write makes n records and writes them to a partition that pick chooses. It returns when it knows what the log holds.
func (p *producer) write(ctx context.Context, w *writer, stream string, pick, n int) error {
	p.locks[stream].Lock()
	defer p.locks[stream].Unlock()
	l := p.last(stream)
	partition := pick % len(l.entries)
	records, made := make([]kafkago.Record, n), make([]entry, n)
	p.mu.Lock()
	first := p.next[stream]
	p.next[stream] += uint64(n)
	p.mu.Unlock()
	for i := range n {
		made[i] = entry{first + uint64(i), time.Now().UnixMilli()}
		value, at := w.make(stream, made[i])
		records[i] = kafkago.Record{Key: kafkago.NewBytes(made[i].key()), Value: kafkago.NewBytes(value), Time: at}
	}
	res, err := p.client.Produce(ctx, &kafkago.ProduceRequest{Topic: stream, Partition: partition, RequiredAcks: kafkago.RequireAll,
		Compression: kafkago.Lz4, Records: kafkago.NewRecordReader(records...)})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		// Written or not: what is read at the end says so.
		p.log.Debug("produce", "topic", stream, "partition", partition, "err", err)
		return p.await(ctx, l, partition)
	}
	if res.BaseOffset != int64(len(l.entries[partition])) {
		return p.read(ctx, l, partition)
	}
	p.append(l, partition, made)
	return nil
}

func (p *producer) append(l *life, partition int, made []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.entries[partition] = append(l.entries[partition], made...)
	for _, e := range made {
		p.count += uint64(p.gen.size(l.stream, e))
	}
}

const retryEvery = 200 * time.Millisecond

// await reads what a log holds beyond what is known, as soon as that can be read.
func (p *producer) await(ctx context.Context, l *life, partition int) error {
	for {
		err := p.read(ctx, l, partition)
		if err == nil || ctx.Err() != nil || errors.Is(err, errShrunk) {
			return err
		}
		pause(ctx, retryEvery)
	}
}

var errShrunk = errors.New("a log ends before what a broker has acknowledged")

func (p *producer) read(ctx context.Context, l *life, partition int) error {
	known := int64(len(l.entries[partition]))
	bounds, err := p.reader.ListOffsets(ctx, l.stream, int32(partition))
	if err != nil {
		return err
	}
	end := bounds[int32(partition)].End
	if end < known {
		return fmt.Errorf("%w: %s/%d ends at %d, known is %d", errShrunk, l.stream, partition, end, known)
	}
	for known < end {
		f, err := p.reader.Fetch(ctx, l.stream, int32(partition), known, 8<<20, time.Second)
		if err != nil {
			return err
		}
		var found []entry
		for _, r := range f.Records {
			e, err := entryOf(r.Key)
			if err != nil {
				return fmt.Errorf("%s/%d at %d: %w", l.stream, partition, r.Offset, err)
			}
			if r.Offset != known+int64(len(found)) {
				return fmt.Errorf("%s/%d: offset %d follows %d", l.stream, partition, r.Offset, known+int64(len(found))-1)
			}
			found = append(found, e)
		}
		if len(found) == 0 && f.NextOffset > known {
			return fmt.Errorf("%s/%d: nothing is at offsets %d to %d", l.stream, partition, known, f.NextOffset-1)
		}
		f.Release()
		p.append(l, partition, found)
		known += int64(len(found))
	}
	return nil
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
