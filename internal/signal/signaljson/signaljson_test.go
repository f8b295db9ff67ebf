package signaljson_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

var at = time.Date(2026, 9, 13, 8, 43, 0, 123e6, time.UTC)

func attrs(pairs ...string) signal.Attributes {
	var list []signal.Attr
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, signal.Attr{Name: pairs[i], Value: pairs[i+1]})
	}
	return signal.AttributesOf(list...)
}

var full = []signal.Event{
	&signal.Request{
		Time: at, Path: signal.Path{Service: "issues", Operation: "/:owner/:repo/issues", Access: signal.Write}, Outcome: signal.Failure, Count: 3,
		Status: "504", Error: "request_timeout", Latency: 12345678 * time.Nanosecond, Account: "org-1", Attempt: 2, Attributes: attrs("region", "iad", "a", `"q"`),
		TraceID: "5b8efff798038103d269b633813fc60c", Estimated: true,
	},
	&signal.Request{Time: at.Add(567), Path: signal.Path{Service: "a", Operation: "b", Access: signal.Read}, Count: 1, Latency: -1, Attempt: 1},
	&signal.Request{Time: at, Path: signal.Path{Service: "a", Operation: "b", Access: signal.Read}, Outcome: signal.Throttled, Count: 1, Latency: 0, Attempt: 1},
	&signal.Gauge{Time: at, Resource: "mysql/collab/primary", Metric: "connections_used", Value: 4000, Limit: 4000, Unit: "{connection}", Attributes: attrs("shard", "1")},
	&signal.Gauge{Time: at, Resource: "r", Metric: "m", Value: -1.5e-7},
	&signal.Ticket{
		Time: at, ID: "T1", Subject: "s", Text: "line\nline \"quoted\" \u2028 <b> 无法创建议题", Account: "org-2", Area: "issues", Service: "issues", Language: "zh",
		Source: "email", Tags: []string{"a", "b\\c"}, Severity: "high", URL: "https://example.org/1", Status: "new",
	},
	&signal.Change{
		Time: at, ID: "c1", Kind: signal.Job, Phase: signal.Aborted, Target: "mysql/collab/primary", Title: "t", Actor: "who", URL: "https://example.org/2",
		Dose: 0.25, Attributes: attrs("k", "v"),
	},
	&signal.Alert{
		Time: at, Fingerprint: "f", Status: "firing", Labels: attrs("alertname", "A"), Annotations: attrs("summary", "s"), StartsAt: at,
		GeneratorURL: "http://example.org", Receiver: "r",
	},
	&signal.Alert{Time: at.Add(time.Hour), Status: "resolved", Labels: attrs("alertname", "A"), StartsAt: at, EndsAt: at.Add(time.Hour)},
}

func TestThereAndBack(t *testing.T) {
	for _, want := range full {
		b, err := signaljson.Append([]byte("before"), want)
		if err != nil {
			t.Fatal(err)
		}
		b = b[len("before"):]
		if !json.Valid(b) {
			t.Fatalf("no JSON: %s", b)
		}
		var got []signal.Event
		if err := signaljson.Decode(b, want.Stream(), func(e signal.Event) { got = append(got, e) }); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff([]signal.Event{want}, got); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", b, diff)
		}
		b, err = signaljson.AppendTyped(b[:0], want)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		if err := signaljson.DecodeTyped(b, func(e signal.Event) { got = append(got, e) }); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff([]signal.Event{want}, got); diff != "" {
			t.Errorf("typed: %s\n(-want +got):\n%s", b, diff)
		}
	}
}

func TestNoNumberInJSON(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if b, err := signaljson.Append(nil, &signal.Gauge{Time: at, Resource: "r", Metric: "m", Value: v}); err == nil {
			t.Errorf("%v became %s", v, b)
		}
	}
}

func TestReasons(t *testing.T) {
	const ok = `"time":"2026-09-13T08:43:00Z",`
	tests := []struct {
		stream signal.Stream
		json   string
		reason signaljson.Reason
		field  string
	}{
		{signal.Requests, ``, signaljson.Malformed, ""},
		{signal.Requests, `null`, signaljson.Missing, "time"},
		{signal.Requests, `[]`, signaljson.Malformed, ""},
		{signal.Requests, `{` + ok + `"service":"a"`, signaljson.Malformed, ""},
		{signal.Requests, `{"service":"a","operation":"b","outcome":"success"}`, signaljson.Missing, "time"},
		{signal.Requests, `{` + ok + `"operation":"b","outcome":"success"}`, signaljson.Missing, "service"},
		{signal.Requests, `{` + ok + `"service":"a","outcome":"success"}`, signaljson.Missing, "operation"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b"}`, signaljson.Missing, "outcome"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"ok"}`, signaljson.Invalid, "outcome"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","access":"rw"}`, signaljson.Invalid, "access"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","count":0}`, signaljson.Invalid, "count"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","count":-3}`, signaljson.Invalid, "count"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","count":1.5}`, signaljson.Invalid, "count"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","attempt":0}`, signaljson.Invalid, "attempt"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","latency_ms":-1}`, signaljson.Invalid, "latency_ms"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","latency_ms":1e30}`, signaljson.Invalid, "latency_ms"},
		{signal.Requests, `{` + ok + `"service":1,"operation":"b","outcome":"success"}`, signaljson.Invalid, "service"},
		{signal.Requests, `{"time":"yesterday","service":"a","operation":"b","outcome":"success"}`, signaljson.Invalid, "time"},
		{signal.Requests, `{"time":1.5,"service":"a","operation":"b","outcome":"success"}`, signaljson.Invalid, "time"},
		{signal.Requests, `{"time":{},"service":"a","operation":"b","outcome":"success"}`, signaljson.Invalid, "time"},
		{signal.Requests, `{` + ok + `"service":"a","operation":"b","outcome":"success","attributes":{"x":[1]}}`, signaljson.Invalid, "attributes"},
		{signal.Gauges, `{` + ok + `"resource":"r","metric":"m"}`, signaljson.Missing, "value"},
		{signal.Gauges, `{` + ok + `"resource":"r","metric":"m","value":"1"}`, signaljson.Invalid, "value"},
		{signal.Gauges, `{` + ok + `"resource":"r","metric":"m","value":1,"limit":-1}`, signaljson.Invalid, "limit"},
		{signal.Tickets, `{` + ok + `"id":"1"}`, signaljson.Missing, "text"},
		{signal.Tickets, `{` + ok + `"text":"x"}`, signaljson.Missing, "id"},
		{signal.Changes, `{` + ok + `"id":"1","kind":"deploy"}`, signaljson.Missing, "phase"},
		{signal.Changes, `{` + ok + `"id":"1","kind":"party","phase":"started"}`, signaljson.Invalid, "kind"},
		{signal.Changes, `{` + ok + `"id":"1","kind":"deploy","phase":"over"}`, signaljson.Invalid, "phase"},
		{signal.Changes, `{` + ok + `"id":"1","kind":"deploy","phase":"started","dose":3}`, signaljson.Invalid, "dose"},
		{signal.Alerts, `{"status":"firing","startsAt":"2026-09-13T08:43:00Z"}`, signaljson.Missing, "labels"},
		{signal.Alerts, `{"status":"firing","labels":{"a":"b"}}`, signaljson.Missing, "startsAt"},
		{signal.Alerts, `{"status":"maybe","labels":{"a":"b"},"startsAt":"2026-09-13T08:43:00Z"}`, signaljson.Invalid, "status"},
		{"nothing", `{}`, signaljson.Invalid, "type"},
	}
	for _, tt := range tests {
		err := signaljson.Decode([]byte(tt.json), tt.stream, func(e signal.Event) { t.Errorf("%s: emitted %v", tt.json, e) })
		var e *signaljson.Error
		if !errors.As(err, &e) || e.Reason != tt.reason || e.Field != tt.field {
			t.Errorf("%s %s: %+v, want %s of %q", tt.stream, tt.json, err, tt.reason, tt.field)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, e := range full {
		b, err := signaljson.AppendTyped(nil, e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = signaljson.DecodeTyped([]byte(text), func(e signal.Event) {
			b, err := signaljson.AppendTyped(nil, e)
			if err != nil {
				t.Fatalf("%s: what was read cannot be written: %v", text, err)
			}
			if strings.Contains(string(b), "\n") {
				t.Fatalf("a line end within %s", b)
			}
			if err := signaljson.DecodeTyped(b, func(signal.Event) {}); err != nil {
				t.Fatalf("%s: what was written cannot be read: %v", b, err)
			}
		})
	})
}

func BenchmarkDecode(b *testing.B) {
	line, err := signaljson.AppendTyped(nil, &signal.Request{
		Time: at, Path: signal.Path{Service: "issues", Operation: "/:owner/:repo/issues", Access: signal.Write}, Outcome: signal.Success, Count: 1, Status: "200",
		Latency: 12345 * time.Microsecond, Account: "org-1", Attempt: 1, Attributes: attrs("region", "iad"), TraceID: "5b8efff798038103d269b633813fc60c",
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := signaljson.DecodeTyped(line, func(signal.Event) {}); err != nil {
			b.Fatal(err)
		}
	}
}
