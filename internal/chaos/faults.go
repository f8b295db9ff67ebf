package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// fault is one of the campaign's, with a source of chance of its own: what it does is a function of seed and number,
// whatever happened before.
type fault struct {
	number int
	r      *rand.Rand
}

func (f fault) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(f.r.Int64N(int64(hi-lo)))
}

func (f fault) one(of ...string) string { return of[f.r.IntN(len(of))] }

// kindOfFault does one and returns its name for the report; errNotReached where the occasion did not come.
type kindOfFault struct {
	weight int
	run    func(*campaign, context.Context, fault) (string, error)
}

var kinds = []kindOfFault{
	{92, (*campaign).strikeMember},   // faults_step.go: at a step of the protocol
	{30, (*campaign).strikeRequest},  // the same, but the member lives: its request is delayed, lost or refused
	{20, (*campaign).zombie},         // a late insert
	{12, (*campaign).engineDies},     // faults_server.go
	{6, (*campaign).engineSleeps},    //
	{8, (*campaign).brokerDies},      //
	{4, (*campaign).brokerSleeps},    //
	{10, (*campaign).joinAndLeave},   // faults_group.go
	{6, (*campaign).leaveInOrder},    //
	{1, (*campaign).longSleep},       //
	{1, (*campaign).loseOffsets},     // faults_topic.go
	{1, (*campaign).moveOffsets},     //
	{4, (*campaign).remakeTopic},     //
	{4, (*campaign).addPartition},    //
	{1, (*campaign).everythingFalls}, // faults_group.go
}

// inject draws faults until enough were injected, or the time is up. It returns when all of them are over.
func (c *campaign) inject(ctx context.Context) {
	if c.o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Duration)
		defer cancel()
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, c.o.Parallel)
	for n := 0; c.wanted(len(slots)) && ctx.Err() == nil; {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		f := fault{n, rand.New(rand.NewPCG(c.o.Seed, uint64(n)))}
		n++
		wg.Go(func() {
			defer func() { <-slots }()
			c.injectOne(ctx, f)
		})
		for !c.wanted(len(slots)) && len(slots) > 0 && ctx.Err() == nil { // those under way may be enough
			pause(ctx, 50*time.Millisecond)
		}
	}
	wg.Wait()
}

func (c *campaign) wanted(underWay int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done+underWay < c.o.Faults
}

func (c *campaign) injectOne(ctx context.Context, f fault) {
	pause(ctx, f.between(10*time.Millisecond, 500*time.Millisecond))
	all := 0
	for _, k := range kinds {
		all += k.weight
	}
	x := f.r.IntN(all)
	for _, k := range kinds {
		if x -= k.weight; x >= 0 {
			continue
		}
		name, err := k.run(c, ctx, f)
		c.logger.Info("fault", "number", f.number, "kind", name, "err", err)
		if err == nil {
			c.mu.Lock()
			c.done++
			c.injected[name]++
			c.mu.Unlock()
		}
		return
	}
}

// patience is how long a trap waits for its step.
const patience = 6 * time.Second

// await returns when the trap has struck, else it takes it away.
func (c *campaign) await(t *trap) (hit, error) {
	c.traps.arm(t)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var h hit
	select {
	case h = <-t.sprung:
	case <-timer.C:
		if c.traps.disarm(t) {
			return h, errNotReached
		}
		h = <-t.sprung
	}
	if <-t.over; !t.struck {
		return h, errNotReached
	}
	return h, nil
}

// anyone is a member to wait for: mostly whoever comes first.
func (c *campaign) anyone(f fault) int {
	if f.r.IntN(3) > 0 {
		return -1
	}
	return f.r.IntN(c.o.Members)
}

func at(what, point string, s stage) string {
	return fmt.Sprintf("%s %s %s", what, s, point)
}
