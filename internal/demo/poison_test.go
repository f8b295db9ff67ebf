package demo

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/scenario/wire"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What can't be read becomes a dead letter with its reason; what comes after it is read.
func TestPoisonRecords(t *testing.T) {
	s := load(t, "quiet")
	d := up(t, Options{Scenario: s, WallClock: true})
	ctx := t.Context()
	now := time.Now().UTC().Truncate(time.Millisecond)
	good := signal.Request{Time: now, Path: signal.Path{Service: "issues", Operation: "create", Access: signal.Write}, Count: 1, Status: "200", Latency: time.Millisecond, Attempt: 1, TraceID: "0af7651916cd43dd8448eb211c80319c"}
	span, err := wire.NewEncoder(s, wire.Options{}).ToOTLP([]signal.Request{good})
	if err != nil {
		t.Fatal(err)
	}
	request := func(at string) []byte {
		return fmt.Appendf(nil, `{"time":%q,"service":"issues","operation":"create","access":"write","outcome":"success"}`, at)
	}
	p := d.kafka.NewProducer()
	for _, r := range []struct {
		topic string
		value []byte
	}{
		{"otlp_spans", []byte("\xff\xfe not protobuf")},
		{"otlp_spans", span[:len(span)/2]},
		{"otlp_spans", nil},
		{"otlp_spans", span},
		{"tocsin.requests", []byte(`{"time":"2026-09-13T08:43:00Z","service":"iss`)},
		{"tocsin.requests", []byte{}},
		{"tocsin.requests", request("2106-02-07T06:28:16Z")},
		{"tocsin.requests", request("1999-01-01T00:00:00Z")},
		{"tocsin.requests", []byte(`{"service":"issues"}`)},
		{"tocsin.requests", append(bytes.Repeat([]byte(" "), 2<<20), request(now.Format(time.RFC3339Nano))...)},
		{"tocsin.requests", request(now.Format(time.RFC3339Nano))},
	} {
		if err := p.Produce(ctx, r.topic, 0, kafka.Record{Time: now, Value: r.value}); err != nil {
			t.Fatalf("producing %d bytes to %s: %v", len(r.value), r.topic, err)
		}
	}
	conn := d.conn(t)
	var counted uint64
	eventually(t, 30*time.Second, "the good records are counted", func() bool {
		err := conn.QueryRow(ctx, "SELECT sum(successes) FROM cells WHERE marker = 0").Scan(&counted)
		return err == nil && counted == 2
	})
	rows, err := conn.Query(ctx, "SELECT topic, offset, reason, size FROM dead_letters ORDER BY topic, offset")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var topic, reason string
		var offset int64
		var size uint64
		if err := rows.Scan(&topic, &offset, &reason, &size); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s/%d %s", topic, offset, reason))
	}
	want := []string{
		"otlp_spans/0 malformed", "otlp_spans/1 malformed", "otlp_spans/2 empty",
		"tocsin.requests/0 malformed", "tocsin.requests/1 empty", "tocsin.requests/2 future", "tocsin.requests/3 too_old",
		"tocsin.requests/4 missing_field", "tocsin.requests/5 too_large",
	}
	if !slices.Equal(got, want) {
		t.Errorf("dead letters %q, want %q", got, want)
	}
}
