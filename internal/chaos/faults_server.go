package chaos

import (
	"context"
	"syscall"
	"time"
)

// engineDies kills ClickHouse, mostly while an insert is on its way or half done. Its supervisor starts it again.
func (c *campaign) engineDies(ctx context.Context, f fault) (string, error) {
	if !c.engMu.TryLock() {
		return "", errNotReached
	}
	defer c.engMu.Unlock()
	starts := c.engine.Restarts()
	kill := func() { _ = killProcess(c.engine.Pid()) }
	t := &trap{member: -1, point: draw(f, isInsert)}
	var name string
	soon := f.between(0, 30*time.Millisecond)
	switch f.r.IntN(4) {
	case 0:
		t.stage, t.strike, t.then = after, func(hit) { kill() }, lose
		name = "ClickHouse SIGKILL " + after.String() + " " + t.point
	case 1:
		t.then, t.midway = half, func(hit) { kill() }
		name = "ClickHouse SIGKILL in mid-" + t.point
	case 2:
		t.strike = func(hit) { time.AfterFunc(soon, kill) }
		name = "ClickHouse SIGKILL during " + t.point
	default:
		kill()
		name = "ClickHouse SIGKILL"
	}
	if t.stage == after || t.midway != nil || t.strike != nil {
		if _, err := c.await(t); err != nil {
			return name, err
		}
	}
	return name, c.engineBack(ctx, starts)
}

// engineBack waits until the supervisor has started ClickHouse again.
func (c *campaign) engineBack(ctx context.Context, before int) error {
	for c.engine.Restarts() == before && ctx.Err() == nil {
		select {
		case <-c.engine.Done():
			c.trouble("ClickHouse stays away: %v", c.engine.Err())
			return nil
		default:
		}
		pause(ctx, 50*time.Millisecond)
	}
	pause(ctx, 2500*time.Millisecond) // its supervisor gives up one that dies again and again at once
	return nil
}

func (c *campaign) engineSleeps(ctx context.Context, f fault) (string, error) {
	if !c.engMu.TryLock() {
		return "", errNotReached
	}
	defer c.engMu.Unlock()
	pid := c.engine.Pid()
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	pause(ctx, f.between(300*time.Millisecond, 5*time.Second))
	_ = syscall.Kill(pid, syscall.SIGCONT)
	return "ClickHouse SIGSTOP", nil
}

// brokerDies kills or ends a broker, often right when it has taken a commit.
func (c *campaign) brokerDies(ctx context.Context, f fault) (string, error) {
	if !c.cluMu.TryLock() {
		return "", errNotReached
	}
	defer c.cluMu.Unlock()
	i := f.r.IntN(c.cluster.Len())
	name := "broker SIGKILL"
	killed := make(chan error, 1)
	switch f.r.IntN(4) {
	case 0:
		name = "broker ends in order"
		killed <- c.cluster.Shutdown(i)
	case 1:
		killed <- c.cluster.Kill(i)
	default:
		t := &trap{member: -1, point: draw(f, func(s string) bool {
			return isCommit(s) || s == "join" || s == "sync" || s == "fetch" || s == "committed"
		}),
			stage: after, then: lose}
		t.strike = func(h hit) { killed <- c.cluster.Kill(h.broker) }
		name = "broker SIGKILL after " + t.point
		h, reached := c.await(t)
		if reached != nil {
			return name, reached
		}
		i = h.broker
	}
	if err := <-killed; err != nil {
		c.trouble("%s: %v", name, err)
	}
	pause(ctx, f.between(0, 3*time.Second))
	if err := c.cluster.Start(context.WithoutCancel(ctx), i); err != nil {
		c.trouble("start broker %d: %v", i, err)
	}
	c.mu.Lock()
	c.restarts++
	c.mu.Unlock()
	return name, nil
}

func (c *campaign) brokerSleeps(ctx context.Context, f fault) (string, error) {
	if !c.cluMu.TryLock() {
		return "", errNotReached
	}
	defer c.cluMu.Unlock()
	i := f.r.IntN(c.cluster.Len())
	if err := c.cluster.Stop(i); err != nil {
		c.trouble("stop broker %d: %v", i, err)
	}
	pause(ctx, f.between(300*time.Millisecond, 6*time.Second))
	if err := c.cluster.Cont(i); err != nil {
		c.trouble("let broker %d go on: %v", i, err)
	}
	return "broker SIGSTOP", nil
}
