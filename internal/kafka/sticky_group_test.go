package kafka_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
)

// Whoever works keeps the partition while others come and go, and when it goes another gets it. Among them is a member
// of a version that knows no claims.
func TestWhoeverClaimsKeepsThePartitions(t *testing.T) {
	addr, topic := broker(t, 1)
	member := func(claims bool) *runner {
		c := newClient(t, addr)
		var holds atomic.Bool
		cfg := kafka.GroupConfig{ID: "g-" + topic, Topics: []string{topic}, SessionTimeout: 2 * time.Second,
			Heartbeat: 50 * time.Millisecond, RebalanceTimeout: 2 * time.Second, RejoinBackoff: 20 * time.Millisecond}
		if claims {
			cfg.Claim = func() uint64 {
				if holds.Load() {
					return 1
				}
				return 0
			}
		}
		g, err := c.NewGroup(cfg)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		r := &runner{client: c, gens: make(chan kafka.Generation, 100), cancel: cancel, done: make(chan struct{})}
		go func() {
			defer close(r.done)
			_ = g.Run(ctx, func(ctx context.Context, gen kafka.Generation) error {
				holds.Store(len(gen.Assigned[topic]) > 0)
				r.mu.Lock()
				r.last = gen
				r.mu.Unlock()
				<-ctx.Done()
				return nil
			})
		}()
		t.Cleanup(r.stop)
		return r
	}
	a := member(true)
	a.owns(t, topic, 1)
	var others []*runner
	for range 5 { // a coin would let it keep the partition once in six
		o := member(true)
		others = append(others, o)
		joined := o.owns(t, topic, 0).ID
		eventually(t, "the member that claims has the partition in the generation of the new one", func() bool { return a.owns(t, topic, 1).ID >= joined })
	}
	a.stop()
	one := func() bool {
		n := 0
		for _, r := range others {
			r.mu.Lock()
			n += len(r.last.Assigned[topic])
			r.mu.Unlock()
		}
		return n == 1
	}
	eventually(t, "another has it", one)
	others = append(others, member(false))
	eventually(t, "one of all has it", func() bool { return others[5].joined() && one() })
}

func (r *runner) joined() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.ID > 0
}
