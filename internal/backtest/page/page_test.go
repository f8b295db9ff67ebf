package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/backtest"
)

var start = time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)

func result() *backtest.Result {
	at := start.Add(10 * time.Minute)
	end := start.Add(40 * time.Minute)
	day := backtest.Recording{Name: "a <b>day</b>", From: start, To: start.Add(time.Hour), Labels: &backtest.Labels{
		Incidents: []backtest.Label{{ID: "one", Start: start.Add(8 * time.Minute)}},
		Quiet:     []backtest.Span{{From: start, To: start.Add(8 * time.Minute)}},
	}, Score: &backtest.Score{Labels: 1, Detected: 1}}
	for m := range 60 {
		day.Traffic = append(day.Traffic, backtest.Traffic{At: start.Add(time.Duration(m) * time.Minute), Total: 100, Failures: uint64(m % 7)})
	}
	day.Incidents = []backtest.Incident{{ID: "T-1", Title: "issues: 6% of create writes fail", DeclaredAt: &at, ResolvedAt: &end, Pages: []backtest.Page{{At: at, Reason: "declared"}}}}
	r := &backtest.Result{Recordings: []backtest.Recording{day, {Name: "nothing", From: start, To: start.Add(time.Minute)}}, Against: []backtest.Recording{{Name: "a day"}, {Name: "nothing"}}}
	r.Sum()
	r.Changes = backtest.Compare(r.Recordings, r.Against)
	return r
}

func TestPage(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, result()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"a &lt;b&gt;day&lt;/b&gt;", "<polyline", `class="declared page"`, `class="label"`, "would page", "issues: 6% of create writes fail", "prefers-color-scheme: dark", `name="viewport"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	// It is self-contained: nothing is fetched and nothing runs.
	if bad := regexp.MustCompile(`(?i)<script|<link|<img|<iframe|src=|href=|url\(|@import|https?:`).FindString(text); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	// Each plot is well-formed, as an image viewer would ask for.
	for i, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(text, -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("plot %d: %v", i, err)
				break
			}
		}
	}
}
