package demo

import (
	"fmt"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// A first start that is told to read a topic from its beginning finds a week with two incidents that are long over. It
// pages nobody, and both are in the log.
func TestAWeekOfBacklogPagesNobody(t *testing.T) {
	s := load(t, "quiet")
	d := up(t, Options{Scenario: s, WallClock: true, BeforeDaemon: func(d *Demo) error {
		return produceWeek(t, d, time.Now().UTC().Truncate(time.Minute))
	}})
	eventually(t, 5*time.Minute, "the backlog is read and judged", func() bool {
		st, err := d.api.Status(t.Context())
		return err == nil && !st.To.IsZero() && st.Lag < time.Minute
	})
	list, err := d.api.Incidents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, in := range list {
		if in.DeclaredAt.IsZero() {
			continue
		}
		declared++
		if in.State != incident.Resolved {
			t.Errorf("%s is %s, long after it was over", in.Title, in.State)
		}
	}
	if declared != 2 {
		for _, in := range list {
			t.Errorf("%s %s from %s to %s: %s", in.ID, in.State, in.StartedAt, in.ResolvedAt, in.Title)
		}
		t.Errorf("%d incidents were declared, want 2", declared)
		firstTicks(t, d)
	}
	if alerts := d.PagerDuty.State().Alerts; len(alerts) != 0 {
		t.Errorf("a backlog paged somebody: %s", pretty(t, alerts))
	}
}

// produceWeek puts a week of counters onto the topic of native requests: four services, of one of which all writes fail
// twice, for a quarter of an hour.
func produceWeek(t *testing.T, d *Demo, now time.Time) error {
	t.Helper()
	if err := d.kafka.EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: "tocsin.requests", Partitions: 1, Configs: map[string]string{"retention.ms": "-1"}}}); err != nil {
		return err
	}
	begin := now.Add(-7 * 24 * time.Hour)
	bad := []time.Time{begin.Add(26 * time.Hour), begin.Add(100 * time.Hour)}
	p := d.kafka.NewProducer()
	var records []kafka.Record
	flush := func() error {
		err := p.Produce(t.Context(), "tocsin.requests", 0, records...)
		records = records[:0]
		return err
	}
	for at := begin; at.Before(now); at = at.Add(time.Minute) {
		failing := false
		for _, b := range bad {
			failing = failing || !at.Before(b) && at.Before(b.Add(15*time.Minute))
		}
		for i := range 4 {
			r := signal.Request{
				Time: at, Path: signal.Path{Service: fmt.Sprintf("service-%d", i), Operation: "create", Access: signal.Write}, Outcome: signal.Success, Count: 120, Latency: 20 * time.Millisecond,
			}
			if failing && i == 0 {
				r.Outcome, r.Account = signal.Failure, fmt.Sprintf("account-%d", at.Minute())
			}
			value, err := signaljson.Append(nil, &r)
			if err != nil {
				return err
			}
			records = append(records, kafka.Record{Time: at, Value: value})
		}
		if len(records) >= 2000 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// firstTicks shows how judging began, for a failure's log.
func firstTicks(t *testing.T, d *Demo) {
	rows, err := d.conn(t).Query(t.Context(), "SELECT toString(tuple(*)) FROM ticks ORDER BY tick LIMIT 4")
	if err != nil {
		t.Log(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if rows.Scan(&s) == nil {
			t.Log(s[:min(len(s), 1500)])
		}
	}
}
