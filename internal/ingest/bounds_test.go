package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest/mask"
	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// All texts of an event count for the bound of a batch: a block of too many is refused for ever.
func TestAllTextsCount(t *testing.T) {
	long := strings.Repeat("x", 1000)
	set := signal.AttributesOf(signal.Attr{Name: "a", Value: long})
	for _, c := range []struct {
		e     signal.Event
		texts int
	}{
		{&signal.Gauge{Resource: long, Metric: long, Unit: long, Attributes: set}, 4},
		{&signal.Ticket{ID: long, Subject: long, Text: long, Account: long, Area: long, Service: long, Language: long, Source: long, Tags: []string{long, long},
			Severity: long, URL: long, Status: long}, 13},
		{&signal.Change{ID: long, Target: long, Title: long, Actor: long, URL: long, Attributes: set}, 6},
		{&signal.Alert{Fingerprint: long, Labels: set, Annotations: set, GeneratorURL: long, Receiver: long}, 5},
		{&series.Point{Request: signal.Request{Path: signal.Path{Service: long, Operation: long}, Attributes: set, Account: long, Error: long}}, 5},
	} {
		b := &batch{}
		if b.event(c.e); b.size < c.texts*len(long) {
			t.Errorf("%T of %d texts counts %d bytes", c.e, c.texts, b.size)
		}
	}
}

// The largest batch and its marker fit into one block.
func TestRowsLeaveRoomForTheMarker(t *testing.T) {
	b := &batch{maxRows: maxRowsLimit, maxBytes: 1 << 30, gauges: make([]signal.Gauge, maxRowsLimit-MaxEvents)}
	if !b.full() {
		t.Errorf("%d rows, %d more and a marker are above %d", b.rows(), MaxEvents, maxRowsLimit)
	}
}

// Points of failures become samples in the store, as errors of requests do.
func TestErrorsOfPointsAreMasked(t *testing.T) {
	m, err := mask.New()
	if err != nil {
		t.Fatal(err)
	}
	b := &batch{masker: m, stream: signal.Requests}
	b.event(&series.Point{Request: signal.Request{Time: time.Unix(1, 0), Outcome: signal.Failure, Error: "no mailbox jane@example.com"}})
	if got := b.finish(Range{}, time.Time{}, "", time.Time{}).Points[0].Error; got == "" || strings.Contains(got, "jane@") {
		t.Errorf("stored is %q", got)
	}
}
