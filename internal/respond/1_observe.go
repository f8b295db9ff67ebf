package respond

import (
	"context"
	"time"
)

// read takes turns until ctx ends. A log that cannot be read keeps nobody from delivering what was decided before.
func (l *Loop) read(ctx context.Context) {
	ticker := time.NewTicker(l.Poll)
	defer ticker.Stop()
	for pictured := false; ; {
		if !pictured {
			err := l.picture(ctx)
			pictured = err == nil
			l.readOutcome(ctx, err)
		}
		if pictured {
			l.turn(ctx)
		}
		select {
		case <-ctx.Done():
			l.save(ctx)
			return
		case <-ticker.C:
		}
	}
}

// picture learns the newest state of all that is open or ended lately; events after the cursor come on top.
func (l *Loop) picture(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	events, err := l.Log.Open(ctx, l.Now().Add(-l.Settings.Retention.Std()/2))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.planner.Observe(e, false)
	}
	return nil
}

// observe reads the log to its end before anything is planned, so that what came and went meanwhile is known to be
// over. It reports false while the end has not been reached: half a story must page nobody.
func (l *Loop) observe(ctx context.Context) bool {
	for range maxReads {
		readCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
		events, next, head, err := l.Log.After(readCtx, l.cursor, readLimit)
		cancel()
		l.readOutcome(ctx, err)
		if err != nil {
			return !l.midway // else time goes on without the log: silences end, retries are due
		}
		l.Metrics.events.Add(float64(len(events)))
		l.mu.Lock()
		for _, e := range events {
			l.planner.Observe(e, true)
		}
		l.planner.SetHead(head)
		l.mu.Unlock()
		l.cursor, l.midway = next, len(events) >= readLimit
		if !l.midway {
			return true
		}
	}
	return false
}

// readOutcome tells of trouble with the log once, and of its end.
func (l *Loop) readOutcome(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.Metrics.readErr.Inc()
		l.Health("clickhouse_unreachable", false, err.Error())
		if !l.blind {
			l.Logger.Error("read the incident log", "err", err)
		}
	} else {
		l.Health("clickhouse_unreachable", true, "")
		if l.blind {
			l.Logger.Info("the incident log can be read again")
		}
	}
	l.blind = err != nil
}
