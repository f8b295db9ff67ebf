package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

// After a reload that failed the process does its work by the rules before it: that is a problem, told and paged, and no reason
// to take the process out of service. What is not there keeps it from being ready, by name.
func TestWhatKeepsFromBeingReady(t *testing.T) {
	up := make(chan struct{})
	close(up)
	pager := selfpage.New(selfpage.Options{Name: "here", Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	look := func(s *schema, topics *topics, joined bool) (problems, notReady string) {
		all, not := troubles(s, topics, joined, pager)
		return strings.Join(all, "; "), strings.Join(not, "; ")
	}
	if all, not := look(&schema{ready: up}, &topics{ready: up}, true); all != "" || not != "" {
		t.Errorf("all is well: %q, %q", all, not)
	}
	for _, c := range []struct {
		s      *schema
		topics *topics
		joined bool
		want   string
	}{
		{&schema{ready: make(chan struct{})}, &topics{ready: up}, true, "waiting for ClickHouse"},
		{&schema{ready: up}, &topics{ready: make(chan struct{})}, false, "waiting for Kafka"},
		{&schema{ready: up}, &topics{ready: up}, false, "has not joined the consumer group yet"},
		{&schema{ready: up}, &topics{ready: up, missing: []string{"otlp_spans", "orders"}}, false, "no such topic as otlp_spans, orders"},
	} {
		if all, not := look(c.s, c.topics, c.joined); !strings.Contains(not, c.want) || all != not {
			t.Errorf("want %q: %q, %q", c.want, all, not)
		}
	}
	if _, not := look(&schema{ready: up}, &topics{ready: up, missing: []string{"otlp_spans"}}, true); not != "" {
		t.Errorf("one of several topics is missing: %q", not)
	}
	pager.From("reload").Report(selfpage.RulesUnreadable, false, "a.yaml:3:1: no such kind")
	if all, not := look(&schema{ready: up}, &topics{ready: up}, true); not != "" || !strings.Contains(all, "last good ones are in use") {
		t.Errorf("after a reload that failed: %q, %q", all, not)
	}
	pager.From("topics").Report(selfpage.KafkaUnreachable, false, "refused")
	if all, not := look(&schema{ready: up}, &topics{ready: up}, true); !strings.Contains(not, "Kafka cannot be reached") || !strings.Contains(all, "last good ones") {
		t.Errorf("without Kafka: %q, %q", all, not)
	}
}

type notedLog struct{ asked []string }

func (n *notedLog) After(_ context.Context, c respond.Cursor, _ int) ([]incident.Event, respond.Cursor, respond.Head, error) {
	n.asked = append(n.asked, "after")
	return nil, c, respond.Head{}, nil
}

func (n *notedLog) Open(context.Context, time.Time) ([]incident.Event, error) {
	n.asked = append(n.asked, "open")
	return nil, nil
}

// Before the first start has made the tables the incident log is not asked for: that would be an error in the log of everybody's
// first start.
func TestTheLogIsReadOnceItIsThere(t *testing.T) {
	n, s := &notedLog{}, &schema{ready: make(chan struct{})}
	log := afterSchema{n, s}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := log.Open(short, time.Time{}); !errors.Is(err, errNoSchema) {
		t.Error(err)
	}
	if _, _, _, err := log.After(short, respond.Cursor{}, 1); !errors.Is(err, errNoSchema) || len(n.asked) > 0 {
		t.Error(err, n.asked)
	}
	close(s.ready)
	if _, err := log.Open(t.Context(), time.Time{}); err != nil {
		t.Error(err)
	}
	if _, _, _, err := log.After(t.Context(), respond.Cursor{}, 1); err != nil || !slices.Equal(n.asked, []string{"open", "after"}) {
		t.Error(err, n.asked)
	}
}
