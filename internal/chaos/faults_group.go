package chaos

import (
	"context"
	"sync"
	"time"
)

// joinAndLeave lets one more member come and go: two rebalances.
func (c *campaign) joinAndLeave(ctx context.Context, f fault) (string, error) {
	extra := c.members[c.o.Members]
	if extra.running() {
		return "", errNotReached
	}
	c.revive(extra)
	pause(ctx, f.between(time.Second, 5*time.Second))
	if f.r.IntN(3) == 0 {
		extra.kill()
		return "member joins and dies", nil
	}
	extra.end()
	return "member joins and leaves", nil
}

// leaveInOrder is SIGTERM, as at every deployment.
func (c *campaign) leaveInOrder(ctx context.Context, f fault) (string, error) {
	m := c.members[f.r.IntN(c.o.Members)]
	m.end()
	pause(ctx, f.between(0, 2*time.Second))
	c.revive(m)
	return "member SIGTERM", nil
}

// longSleep is longer than a reservation counts, and than anybody waits for the member.
func (c *campaign) longSleep(ctx context.Context, f fault) (string, error) {
	if c.o.Duration > 0 && c.o.Duration < 2*time.Minute {
		return "", errNotReached
	}
	t := &trap{member: f.r.IntN(c.o.Members), point: draw(f, func(s string) bool { return isCommit(s) || isInsert(s) }), stage: stage(f.r.IntN(2))}
	t.strike = func(h hit) { c.members[h.member].stop() }
	h, err := c.await(t)
	if err != nil {
		return "", err
	}
	pause(ctx, f.between(61*time.Second, 70*time.Second))
	c.members[h.member].cont()
	return at("SIGSTOP for over a minute", t.point, t.stage), nil
}

// everythingFalls is a power cut: all members, the engine and all brokers at once.
func (c *campaign) everythingFalls(ctx context.Context, f fault) (string, error) {
	c.engMu.Lock()
	defer c.engMu.Unlock()
	c.cluMu.Lock()
	defer c.cluMu.Unlock()
	starts := c.engine.Restarts()
	var wg sync.WaitGroup
	for _, m := range c.members {
		wg.Go(m.kill)
	}
	wg.Go(func() { _ = killProcess(c.engine.Pid()) })
	for i := range c.cluster.Len() {
		wg.Go(func() { _ = c.cluster.Kill(i) })
	}
	wg.Wait()
	pause(ctx, f.between(0, 2*time.Second))
	for i := range c.cluster.Len() {
		wg.Go(func() {
			if err := c.cluster.Start(context.WithoutCancel(ctx), i); err != nil {
				c.trouble("start broker %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for _, m := range c.base() {
		c.revive(m)
	}
	c.mu.Lock()
	c.restarts += c.cluster.Len()
	c.mu.Unlock()
	return "everything SIGKILL", c.engineBack(ctx, starts)
}
