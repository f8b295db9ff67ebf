package chaos

import (
	"context"
	"time"
)

// steps are the requests that the protocol is made of, with how often each is chosen.
var steps = []struct {
	weight int
	point  string
}{
	{10, "reserve"}, {4, "done"},
	{9, "insert cells"}, {4, "insert gauges"}, {4, "insert tickets"}, {4, "insert dead_letters"}, {1, "insert keys"}, {1, "insert topic_partitions"},
	{1, "insert heartbeats"}, {2, "insert tick*"}, {2, "query"},
	{2, "committed"}, {1, "bounds"}, {2, "fetch"}, {2, "join"}, {2, "sync"}, {1, "heartbeat"}, {1, "leave"},
}

// draw chooses among the steps that fit.
func draw(f fault, fits func(string) bool) string {
	all := 0
	for _, s := range steps {
		if fits(s.point) {
			all += s.weight
		}
	}
	x := f.r.IntN(all)
	for _, s := range steps {
		if !fits(s.point) {
			continue
		}
		if x -= s.weight; x < 0 {
			return s.point
		}
	}
	panic("unreachable")
}

func anyStep(string) bool    { return true }
func isInsert(s string) bool { return len(s) > 6 && s[:6] == "insert" }
func isCommit(s string) bool { return s == "reserve" || s == "done" }

// hasToken tells which inserts are deduplicated.
func hasToken(s string) bool {
	return isInsert(s) && s != "insert keys" && s != "insert topic_partitions" && s != "insert heartbeats"
}

// strikeMember kills or stops a member while one of its requests is on its way.
func (c *campaign) strikeMember(ctx context.Context, f fault) (string, error) {
	t := &trap{member: c.anyone(f), point: draw(f, anyStep), stage: stage(f.r.IntN(3)), then: verdict(f.r.IntN(2))}
	if f.r.IntN(5) < 2 {
		return c.sleepAt(ctx, f, t)
	}
	t.strike = func(h hit) { c.members[h.member].kill() }
	name := at("SIGKILL", t.point, t.stage)
	h, err := c.await(t)
	if err != nil {
		return name, err
	}
	pause(ctx, f.between(0, 3*time.Second))
	c.revive(c.members[h.member])
	return name, nil
}

// sleepAt stops a member, mostly for longer than its session lasts.
func (c *campaign) sleepAt(ctx context.Context, f fault, t *trap) (string, error) {
	t.strike = func(h hit) { c.members[h.member].stop() }
	name := at("SIGSTOP", t.point, t.stage)
	h, err := c.await(t)
	if err != nil {
		return name, err
	}
	pause(ctx, f.between(500*time.Millisecond, 7*time.Second))
	c.members[h.member].cont()
	return name, nil
}

// commitRefusals are what a coordinator may answer instead of taking a commit. The first three say nothing about what
// becomes of it.
var commitRefusals = []int16{14, 15, 16, 22, 25, 27}

// insertRefusals are codes of ClickHouse: out of memory, too many parts, time-out, read-only, cannot write.
var insertRefusals = []int16{241, 252, 159, 242, 75}

// strikeRequest lets the member live.
func (c *campaign) strikeRequest(ctx context.Context, f fault) (string, error) {
	t := &trap{member: c.anyone(f), stage: before}
	var name string
	switch f.r.IntN(5) {
	case 0: // delayed, often beyond all patience, and done then
		t.point = draw(f, func(s string) bool { return isCommit(s) || isInsert(s) })
		wait := f.between(200*time.Millisecond, 7*time.Second)
		t.strike = func(hit) { pause(ctx, wait) }
		name = at("delay", t.point, t.stage)
	case 1:
		t.point, t.then = draw(f, anyStep), lose
		name = at("loss", t.point, t.stage)
	case 2:
		t.point, t.stage, t.then = draw(f, func(s string) bool { return isCommit(s) || isInsert(s) }), after, lose
		name = at("loss", t.point, t.stage)
	case 3:
		t.point, t.then = draw(f, isInsert), half
		name = "cut in mid-" + t.point
	case 4:
		t.then = refuse
		t.point = draw(f, func(s string) bool { return isCommit(s) || isInsert(s) || s == "query" })
		if isCommit(t.point) {
			t.code = commitRefusals[f.r.IntN(len(commitRefusals))]
		} else {
			t.code = insertRefusals[f.r.IntN(len(insertRefusals))]
		}
		name = "refusal of " + t.point
	}
	_, err := c.await(t)
	return name, err
}

// zombieWaits is how long a held insert waits for a successor to store the same range.
const zombieWaits = 6 * time.Second

// zombie holds an insert back until somebody else has stored the range, and lets it go then.
func (c *campaign) zombie(ctx context.Context, f fault) (string, error) {
	t := &trap{member: c.anyone(f), point: draw(f, hasToken)}
	over, later := make(chan bool, 1), f.between(0, time.Second)
	t.held = func(stored <-chan struct{}) {
		timer := time.NewTimer(zombieWaits)
		defer timer.Stop()
		select {
		case <-stored:
			pause(ctx, later)
			over <- true
		case <-timer.C:
			over <- false
		case <-ctx.Done():
			over <- false
		}
	}
	how := f.one("stopped", "killed", "cut off")
	switch how {
	case "stopped":
		t.strike = func(h hit) { c.members[h.member].stop() }
	case "killed":
		t.strike = func(h hit) { c.members[h.member].kill() }
	default:
		t.then = orphan
	}
	name := "late " + t.point + " of a member " + how
	h, err := c.await(t)
	if err != nil {
		return name, err
	}
	if how == "killed" {
		pause(ctx, f.between(0, 2*time.Second))
		c.revive(c.members[h.member])
	}
	if successor := <-over; successor {
		name += ", after its successor's"
	}
	if how == "stopped" {
		pause(ctx, f.between(0, time.Second))
		c.members[h.member].cont()
	}
	return name, nil
}
