package decode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestPlainText(t *testing.T) {
	for in, want := range map[string]string{
		"plain  text\nstays":                        "plain  text\nstays",
		"<p>Nobody can <b>sign in</b>.</p><p>x</p>": "Nobody can sign in. x",
		"3 &lt; 4 &amp; 5":                          "3 < 4 & 5",
		"a < b and c > d":                           "a < b and c > d",
		"cut off <p":                                "cut off <p",
		"<!-- a note -->x<br/>y":                    "x y",
	} {
		if got := plainText(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}

// A record of the largest size, made to be slow, must not hold up its partition.
func TestHostileRecordsAreReadInTime(t *testing.T) {
	began := time.Now()
	for _, unit := range []string{"<", "<a", "< ", "&", "&lt;"} {
		plainText(strings.Repeat(unit, 1<<20/len(unit)) + ">")
		plainText(strings.Repeat(unit, 1<<20/len(unit)))
	}
	var names strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&names, `,{"name":"m%d","sum":{"isMonotonic":true}}`, i)
	}
	lines := run(t, minimal(t, signal.Gauges, "otlp_metrics_json", ""), []byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[`+names.String()[1:]+`]}]}]}`))
	if len(lines) != 1 || !strings.Contains(lines[0], "and 19992 more") {
		t.Errorf("%.300v", lines)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A change that is told again under another envelope must be the same change, and another one must not be.
func TestCDEventsAreKnownByTheirContent(t *testing.T) {
	event := func(id, at string) string {
		return `{"context":{"id":"` + id + `","source":"/d","type":"dev.cdevents.service.deployed.0.3.0","timestamp":"` + at + `"},"subject":{"id":"checkout"}}`
	}
	p := minimal(t, "changes", "cdevents", "")
	first := run(t, p, []byte(event("1", "2026-09-13T08:27:05Z")))
	again := run(t, p, []byte(event("2", "2026-09-13T08:27:05Z")))
	later := run(t, p, []byte(event("1", "2026-09-13T09:27:05Z")))
	id := func(lines []string) string {
		_, rest, _ := strings.Cut(lines[0], `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		return id
	}
	if id(first) == "" || id(first) != id(again) || id(first) == id(later) {
		t.Errorf("%v\n%v\n%v", first, again, later)
	}
}

// Who has a routing key can page people: it must not be kept with what could not be read.
func TestRoutingKeysAreNotKept(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	source, err := Source(minimal(t, signal.Changes, "pagerduty", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{
		`{"routing_key":"` + key + `","event_action":"trigger"}`,
		`[{"routing_key" : "` + key + `","payload":{}},{"routing_key":"` + key + `"},{"service_key":"` + key + `"}]`,
		`{"routing_key":"` + key + `","payl`,
	} {
		letters := 0
		at := time.UnixMilli(1789288985000)
		source.Reader().Read(ingest.Record{Time: at, Value: []byte(record)}, at, func(signal.Event) {}, func(d ingest.DeadLetter) {
			if letters++; strings.Contains(string(d.Payload)+d.Detail, key) || letters == 1 && !strings.Contains(string(d.Payload), "[token]") {
				t.Errorf("%s: kept %s (%s)", record, d.Payload, d.Detail)
			}
		})
		if letters == 0 {
			t.Errorf("%s: no dead letter", record)
		}
	}
}
