package demo

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/scenario/wire"
)

// feed plays a scenario into Kafka. Records of one slice are all acknowledged before the next slice is begun, so that a
// reader that has seen a record of time t has, or can fetch, everything before t − one slice.
type feed struct {
	scenario *scenario.Scenario
	gen      *scenario.Generator
	encoder  *wire.Encoder
	producer *kafka.Producer
	// ahead bounds how far event time may run before what has been judged: the demo goes as fast as Tocsin keeps up and
	// no faster, or its clock would say that Tocsin is late.
	ahead time.Duration
	// judged is event time up to which the detector has come, as Unix nanoseconds; 0 is nothing yet.
	judged *atomic.Int64
	speed  float64
	made   time.Time // end of the last slice generated
	until  time.Time // nothing that begins then or later is played

	// skip is how many records each partition has from an earlier run. A scenario gives the same records for the same
	// seed, so these are the first ones.
	skip map[partition]int64

	at     atomic.Int64  // end of the last slice produced, Unix nanoseconds
	events atomic.Uint64 // events produced
}

// slicesAtOnce are encoded together and produced with one call a partition: smaller calls cost more than they hurry.
const slicesAtOnce = 3

func newFeed(s *scenario.Scenario, seed int64, p *kafka.Producer, judged *atomic.Int64, speed float64) *feed {
	f := &feed{
		scenario: s, gen: scenario.NewGenerator(s, seed), encoder: wire.NewEncoder(s, wire.Options{}), producer: p,
		ahead: 11 * time.Minute, judged: judged, speed: speed, until: s.End,
	}
	f.at.Store(s.Start.UnixNano())
	return f
}

// run returns when all is produced.
func (f *feed) run(ctx context.Context) error {
	began := time.Now()
	for {
		slices := make([]*scenario.Slice, 0, slicesAtOnce)
		for len(slices) < slicesAtOnce && f.made.Before(f.until) {
			s, ok := f.gen.Next()
			if !ok {
				break
			}
			slices, f.made = append(slices, s), s.To
		}
		if len(slices) == 0 {
			return nil
		}
		end := slices[len(slices)-1].To
		if err := f.wait(ctx, began, end); err != nil {
			return err
		}
		for _, s := range slices {
			records, err := f.encoder.Encode(s)
			if err != nil {
				return fmt.Errorf("encoding %s of the scenario: %w", s.From.Format("15:04:05"), err)
			}
			if err := f.produce(ctx, records); err != nil {
				return err
			}
			f.events.Add(uint64(s.Len()))
			f.at.Store(s.To.UnixNano())
		}
	}
}

type partition struct {
	topic string
	id    int
}

func (f *feed) produce(ctx context.Context, records []wire.Record) error {
	by := map[partition][]kafka.Record{}
	for _, r := range records {
		p := partition{r.Topic, r.Partition}
		if f.skip[p] > 0 {
			f.skip[p]--
			continue
		}
		by[p] = append(by[p], kafka.Record{Time: r.Time, Key: r.Key, Value: r.Value})
	}
	g, ctx := errgroup.WithContext(ctx)
	for p, rs := range by {
		g.Go(func() error { return f.producer.Produce(ctx, p.topic, int32(p.id), rs...) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("producing: %w", err)
	}
	return nil
}

// wait holds the next slices until their time has come.
func (f *feed) wait(ctx context.Context, began, end time.Time) error {
	for {
		due := true
		if j := f.judged.Load(); j > 0 || end.Sub(f.scenario.Start) > f.ahead {
			due = end.Sub(time.Unix(0, max(j, f.scenario.Start.UnixNano()))) <= f.ahead
		}
		if f.speed > 0 && time.Duration(float64(time.Since(began))*f.speed) < end.Sub(f.scenario.Start) {
			due = false
		}
		if due {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// skipStored goes on where an earlier run of the same scenario and seed was ended.
func (f *feed) skipStored(ctx context.Context, client *kafka.Client) error {
	f.skip = map[partition]int64{}
	for _, t := range (wire.Options{}).Topics() {
		for p := range t.Partitions {
			o, err := client.ListOffsets(ctx, t.Name, int32(p))
			if err != nil {
				return fmt.Errorf("looking how far an earlier run came: %w", err)
			}
			f.skip[partition{t.Name, p}] = o[int32(p)].End
		}
	}
	return nil
}
