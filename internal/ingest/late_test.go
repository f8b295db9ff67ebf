package ingest

import (
	"testing"
	"time"
)

// A partition that is never read to its end has its watermark from events alone.
func TestWatermarkOfEventsAlone(t *testing.T) {
	now := time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)
	type some struct {
		n     int
		delay time.Duration
	}
	for name, tt := range map[string]struct {
		events  []some
		replays bool
		before  time.Time
		want    time.Duration // behind the newest record
	}{
		"on time":                     {events: []some{{1000, 2 * time.Second}}, want: 2 * time.Second},
		"all half a minute late":      {events: []some{{1000, 30 * time.Second}}, want: 30 * time.Second},
		"all ten minutes late":        {events: []some{{1000, 10 * time.Minute}}, want: heldMax},
		"nearly all ten minutes late": {events: []some{{995, 10 * time.Minute}, {5, time.Second}}, want: heldMax},
		"half ten minutes late":       {events: []some{{500, 10 * time.Minute}, {500, time.Second}}, want: time.Second},
		"a part is fast":              {events: []some{{300, -30 * time.Second}, {700, 5 * time.Second}}, want: 5 * time.Second},
		"a part is slow":              {events: []some{{300, 35 * time.Second}, {700, 5 * time.Second}}, want: 5 * time.Second},
		"all are fast":                {events: []some{{1000, -30 * time.Second}}, want: 0},
		"never back":                  {events: []some{{1000, 30 * time.Second}}, before: now.Add(-time.Second), want: time.Second},
		"a replay is as old as it is": {events: []some{{1000, 30 * 24 * time.Hour}}, replays: true, want: 30 * 24 * time.Hour},
		"nothing":                     {before: now.Add(-time.Hour), want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			b := &batch{readAt: now, watermark: tt.before, replays: tt.replays, maxRecord: now}
			left := make([]int, len(tt.events))
			for i, e := range tt.events {
				left[i] = e.n
			}
			for record := 0; record < 20; record++ { // each with its share of all
				from := len(b.times)
				for i, e := range tt.events {
					n := (e.n + 19) / 20
					n = min(n, left[i])
					left[i] -= n
					for range n {
						b.times = append(b.times, now.Add(-e.delay).UnixMilli())
					}
				}
				b.delay(now, from)
			}
			if got := now.Sub(b.newWatermark()); got != tt.want {
				t.Errorf("%s behind, want %s", got, tt.want)
			}
			if len(b.delays) > 20*(delaysPerRecord+1) {
				t.Errorf("%d delays are kept", len(b.delays))
			}
		})
	}
}
