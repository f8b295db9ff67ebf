package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Play plays the scenario to its end and returns when all of it has been judged.
func (d *Demo) Play(ctx context.Context) error {
	d.screen.line("")
	d.screen.line("%s: %s", d.Scenario.Name, d.Scenario.Title)
	pace := "as fast as Tocsin keeps up"
	if d.Speed > 0 {
		pace = fmt.Sprintf("%g times real time", d.Speed)
	}
	d.screen.line("%s to %s UTC, seed %d, %s", d.Scenario.Start.Format("2 January 2006 15:04"), d.Scenario.End.Format("15:04"), d.Seed, pace)
	d.screen.line("")
	g, gctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	g.Go(func() error {
		defer close(done)
		return d.Feed.run(gctx)
	})
	g.Go(func() error { return d.follow(gctx, done) })
	return g.Wait()
}

const (
	followEvery = 200 * time.Millisecond
	// incidentsEvery is how often incidents are asked for: unlike the status they are read from the database, which the demo
	// keeps busy.
	incidentsEvery = time.Second
	// tail is how much before the end of the scenario all has been judged: what an idle partition's watermark, the
	// detector's grace and the last slice leave.
	tail = time.Minute
	// goneAfter is for how long the daemon may be gone before the demo ends: tests kill it and start it again.
	goneAfter = 5 * time.Second
	// stuckAfter ends a demo that goes nowhere with a line that says so.
	stuckAfter = 2 * time.Minute
)

// follow shows what happens until all that was produced has been judged.
func (d *Demo) follow(ctx context.Context, produced <-chan struct{}) error {
	began, moved, alive := time.Now(), time.Now(), time.Now()
	var at, asked time.Time
	for {
		s, err := d.api.Status(ctx)
		if err == nil {
			if s.To.After(at) {
				at, moved = s.To, time.Now()
				d.judged.Store(at.UnixNano())
			}
			if time.Since(asked) >= incidentsEvery {
				asked = time.Now()
				if err := d.follower.poll(ctx); err != nil && ctx.Err() == nil {
					d.logger.Warn("reading incidents failed", "err", err)
				}
			}
		}
		d.showProgress(at, began)
		select {
		case <-produced:
			if !at.Before(d.Feed.made.Add(-tail)) {
				if d.follower.poll(ctx) == nil {
					return nil
				}
			}
		default:
		}
		if d.daemon.Load().running() {
			alive = time.Now()
		} else if time.Since(alive) > goneAfter {
			return d.ended()
		}
		if time.Since(moved) > stuckAfter {
			return d.stuck(s.Problems)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.broker.Done():
			return fmt.Errorf("Kafka ended: %w", d.broker.Err()) //nolint:staticcheck // a name
		case <-time.After(followEvery):
		}
	}
}

func (d *Demo) stuck(problems []string) error {
	text := fmt.Sprintf("nothing was judged for %s", stuckAfter)
	if len(problems) > 0 {
		text += " (" + strings.Join(problems, "; ") + ")"
	}
	return errors.New(text + "; the daemon's log is in " + d.Dir)
}

func (d *Demo) showProgress(at time.Time, began time.Time) {
	if at.IsZero() {
		at = d.Scenario.Start
	}
	whole := d.Scenario.End.Sub(d.Scenario.Start)
	share := float64(at.Sub(d.Scenario.Start)) / float64(whole)
	speed := float64(at.Sub(d.Scenario.Start)) / float64(time.Since(began))
	d.screen.progress("  %s %s UTC, %3.0f%%, %.0f times real time, %d events", bar(share, 30), at.UTC().Format("15:04:05"), share*100, speed, d.Feed.events.Load())
}

// tellings is what the stand-ins have received, as lines.
func (d *Demo) tellings() []Told {
	var out []Told
	for _, a := range d.PagerDuty.State().Alerts {
		out = append(out, Told{"PagerDuty", a.DedupKey + a.OpenedAt.String(), a.Severity + ": " + a.Summary})
	}
	for _, c := range d.Slack.State().Channels {
		for _, m := range c.Messages {
			out = append(out, Told{"Slack", c.ID + m.TS, "#" + c.Name + ": " + firstLine(m.Text)})
		}
	}
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
