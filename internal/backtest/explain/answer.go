package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Answer is what `tocsin explain` prints; scope and suspects have the shapes that a backtest's incidents have.
type Answer struct {
	Scope    []incident.ScopeSlice `json:"scope"`
	Suspects []incident.Suspect    `json:"suspects"`
	Evidence Evidence              `json:"evidence"`
}

// Evidence is the symptom in numbers: what counts since the onset, what was usual before, and how surely the two differ.
type Evidence struct {
	Service   string         `json:"service"`
	Operation *string        `json:"operation"`
	Access    *signal.Access `json:"access"`
	Signal    Signal         `json:"signal"`
	At        time.Time      `json:"at"`
	Sentence  string         `json:"sentence"`
	// Departs says whether the symptom differs from its past by more than its past does from itself.
	Departs bool       `json:"departs"`
	Onset   *time.Time `json:"onset"`
	From    time.Time  `json:"from"` // of what is compared with
	// SlowerThanMS is the bound above which a request is slow; null where failures are counted.
	SlowerThanMS  *float64 `json:"slower_than_ms"`
	Requests      uint64   `json:"requests"` // since the onset
	Bad           uint64   `json:"bad"`      // of these: failures, or slow ones
	Share         float64  `json:"share"`
	BaselineShare float64  `json:"baseline_share"`
	Expected      float64  `json:"expected"` // bad ones by the share before
	Excess        float64  `json:"excess"`
	Log10         float64  `json:"log10"` // of the likelihood ratio, scatter accounted for
	Table         []Row    `json:"table"`
}

// Row is one block of time.
type Row struct {
	At       time.Time `json:"at"` // its beginning
	Requests uint64    `json:"requests"`
	Bad      uint64    `json:"bad"`
	Share    *float64  `json:"share"` // null without requests
}

// tableRows is how many blocks are shown, the newest.
const tableRows = 12

func (p *Past) evidence(t *trouble) Evidence {
	s := &p.symptom
	e := Evidence{Service: s.Service, Access: s.Access, Signal: t.signal, At: s.At.UTC(), From: s.At.UTC(), Table: []Row{}}
	if s.Operation != "" {
		e.Operation = &s.Operation
	}
	if t.measure.slower > 0 {
		ms := float64(t.measure.slower) / float64(time.Millisecond)
		e.SlowerThanMS = &ms
	}
	if t.grid.blocks == 0 {
		e.Sentence = s.String() + " has no requests to compare."
		return e
	}
	before, since := t.sums()
	e.From = s.At.Add(-t.grid.begin(0)).UTC()
	e.Requests, e.Bad = uint64(since.Total), uint64(since.Bad)
	if since.Total > 0 {
		e.Share = since.Bad / since.Total
	}
	switch {
	case t.found:
		e.BaselineShare = t.Before
	case before.Total > 0:
		e.BaselineShare = before.Bad / before.Total
	}
	e.Expected = since.Total * e.BaselineShare
	e.Excess = since.Bad - e.Expected
	e.Departs = t.convincing()
	if t.found {
		onset := t.onset.UTC()
		e.Onset, e.Log10 = &onset, t.Evidence
	}
	for i := max(0, len(t.rows)-tableRows); i < len(t.rows); i++ {
		b := t.rows[i]
		r := Row{At: s.At.Add(-t.grid.begin(i)).UTC(), Requests: uint64(b.Total), Bad: uint64(b.Bad)}
		if b.Total > 0 {
			share := b.Bad / b.Total
			r.Share = &share
		}
		e.Table = append(e.Table, r)
	}
	if !t.found {
		e.Sentence = fmt.Sprintf("%s: nothing departs; %s of %d requests %s since %s UTC, as before.", s, percent(e.Share), e.Requests, t.verb(), hm(e.At.Add(-t.grid.begin(t.At))))
		return e
	}
	e.Sentence = fmt.Sprintf("%s: %s of %d requests %s since %s UTC, %s before: %.0f more than usual (evidence 10^%.1f).",
		s, percent(e.Share), e.Requests, t.verb(), hm(*e.Onset), percent(e.BaselineShare), e.Excess, e.Log10)
	if !e.Departs {
		e.Sentence += " That is no more than it varies by itself."
	}
	return e
}

func (t *trouble) verb() string {
	if t.measure.slower > 0 {
		return "took longer than " + duration(t.measure.slower)
	}
	return "failed"
}

// String says what was seen, for a list of reasons.
func (t *trouble) String() string {
	return fmt.Sprintf("%s of its requests %s since %s UTC, %s before (evidence 10^%.1f)", percent(t.Since), t.verb(), hm(t.onset), percent(t.Before), t.Evidence)
}

func duration(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

func percent(v float64) string {
	switch {
	case v > 0 && v < 0.0001:
		return "under 0.01%"
	case v < 0.01:
		return fmt.Sprintf("%.2f%%", v*100)
	case v < 0.1:
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f%%", v*100)
}

func hm(t time.Time) string { return t.UTC().Format("15:04") }

func list(names []string, n int) string {
	if len(names) > n {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
	}
	return strings.Join(names, ", ")
}
