package chaos

import (
	"context"
	"fmt"
	"time"
)

// drainWithin is how long the members have to store what is left, and the detector to take it over.
const drainWithin = 4 * time.Minute

// calm ends all faults and waits until everything that the logs hold is stored and has gone through a tick.
func (c *campaign) calm(ctx context.Context, r *Report) error {
	began := time.Now()
	c.members[c.o.Members].kill()
	for _, m := range c.base() {
		m.cont()
	}
	if err := c.startAll(); err != nil {
		return err
	}
	for _, stream := range streams {
		l := c.producer.last(stream)
		for i := range l.entries {
			if err := c.producer.await(ctx, l, i); err != nil {
				return fmt.Errorf("read %s/%d to its end: %w", stream, i, err)
			}
		}
	}
	deadline := time.Now().Add(drainWithin)
	for {
		left, err := c.left(ctx)
		if err == nil && len(left) == 0 {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			r.Stuck = left
			if err != nil {
				r.Stuck = append(r.Stuck, err.Error())
			}
			break
		}
		pause(ctx, 500*time.Millisecond)
	}
	r.Drain = time.Since(began)
	return nil
}

// left is what is not stored yet, or in no tick that is done.
func (c *campaign) left(ctx context.Context) (out []string, err error) {
	stored, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[part]int64{}
	err = c.rows(ctx, `SELECT m.2, m.3, m.4, m.5 FROM (SELECT arrayJoin(marks) AS m FROM ticks WHERE tick = (SELECT max(tick) FROM ticks_done))`, func(row []string) error {
		r := columns{row: row}
		seen[r.part(0)] = r.number(3)
		return r.err
	})
	if err != nil {
		return nil, err
	}
	for _, stream := range streams {
		l := c.producer.last(stream)
		ids := c.parts(l)
		for i, end := range c.producer.ends(stream) {
			if stored[ids[i]] != end {
				out = append(out, fmt.Sprintf("%s: stored up to %d, the log ends at %d", ids[i], stored[ids[i]], end))
			}
		}
	}
	for id, end := range stored {
		if seen[id] != end {
			out = append(out, fmt.Sprintf("%s: stored up to %d, in ticks up to %d", id, end, seen[id]))
		}
	}
	return out, nil
}
