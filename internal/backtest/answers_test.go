package backtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	stuckQuery = "SELECT service, value FROM t WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"
	stuckRules = `groups:
- name: asked
  rules:
  - {alert: Stuck, kind: sql, query: "` + stuckQuery + `", above: 5}
- name: counted
  rules:
  - {alert: Failing, kind: failure_rate, above: 10%}
`
)

// asked lives half an hour with a database that never says the same twice, fails at times and says nothing at others.
func asked(t *testing.T, set *rule.Set) *lived {
	t.Helper()
	l := &lived{said: newJournal(), counts: map[uint64]int{}, sources: map[string]detect.Source{}}
	begin := time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)
	l.sources[detect.SourceRules+set.Revision] = detect.Source{Kind: detect.SourceRules, Revision: set.Revision, Files: set.Files}
	d := detect.New(detect.Config{Rules: set, Catalogue: catalogue.Empty()})
	for n := range 180 {
		from := begin.Add(time.Duration(n) * signal.BucketSize)
		to := from.Add(signal.BucketSize)
		tick := detect.Tick{Number: uint64(n + 1), From: from, To: to, Clock: to, Rules: set.Revision, Catalogue: catalogue.Empty().Revision, Binary: "then"}
		for gi := range set.Groups {
			q, ok := detect.QuestionAt(&set.Groups[gi], &set.Groups[gi].Rules[0], from)
			if !ok || n%6 != n/60 || n > 120 && n < 150 { // later and later, and for five minutes not at all
				continue
			}
			var err error
			if n%42 == 2 {
				err = fmt.Errorf("no answer within %ds", n)
			}
			a, _ := q.Answered([]detect.AnswerRow{{Labels: map[string]string{"service": fmt.Sprintf("s%d", n/20)}, Value: detect.Number(n)}}, err)
			tick.Answers = append(tick.Answers, a)
		}
		in := detect.Inputs{Tick: tick}
		out := d.Tick(in)
		l.ins, l.counts[tick.Number], l.log = append(l.ins, in), in.Rows(), append(l.log, conclusions(tick.Number, &out)...)
	}
	return l
}

func rulesOf(t *testing.T, text string) *rule.Set {
	t.Helper()
	f, err := rule.Parse("r.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &rule.Set{Groups: f.Groups, Revision: text, Files: map[string]string{"r.yaml": text}}
}

// Stored answers are judged as they were live, byte for byte, whatever the database would say now. A query that nobody asked then has
// none, and a replay says so instead of finding nothing.
func TestStoredAnswersAreJudgedAndMissingOnesTold(t *testing.T) {
	live := rulesOf(t, stuckRules)
	l := asked(t, live)
	states := map[string]int{}
	for _, c := range l.log {
		if c.Finding != nil && c.Finding.Finding.Rule == "Stuck" {
			states[c.Finding.Finding.State.String()]++
		}
	}
	if states["firing"] < 3 || states["unknown"] < 2 {
		t.Fatalf("a dull history: %v", states)
	}
	end := l.ins[len(l.ins)-1].Tick.To
	other := strings.Replace(stuckRules, "SELECT service", "SELECT area AS service", 1)
	before, rest, _ := strings.Cut(stuckRules, "- name: asked")
	_, after, _ := strings.Cut(rest, "- name: counted")
	without := asked(t, rulesOf(t, before+"- name: counted"+after))
	forgotten := *without
	forgotten.sources = nil
	for _, v := range []struct {
		name   string
		h      *lived
		rules  string
		asLive bool
		want   string
	}{
		{"as live, though for minutes nothing was answered", l, stuckRules, true, ""},
		{"the same query beside another rule that changed", l, strings.Replace(stuckRules, "10%", "11%", 1), false, ""},
		{"another query of that name", l, other, false, "Stuck (from 2026-09-13T08:03:30Z on)"},
		{"a rule that did not run live", without, stuckRules, false, "Stuck (from 2026-09-13T08:03:30Z on)"},
		{"one that stands in for what is not stored", &forgotten, stuckRules, true, "Stuck (from 2026-09-13T08:03:30Z on)"},
		{"rules that ask nothing", l, strings.Join(strings.SplitAfter(stuckRules, "\n")[:1], "") + "- name: counted\n  rules:\n  - {alert: Failing, kind: failure_rate, above: 11%}\n", false, ""},
	} {
		o := shipped(t)
		o.Catalogue, o.Rules, o.AsLive, o.Verify = catalogue.Empty(), rulesOf(t, v.rules), v.asLive, v.asLive
		rec, err := RunStored(t.Context(), v.h, l.ins[0].Tick.From.Add(-time.Second), end, o)
		if err != nil {
			t.Fatal(err)
		}
		const said = "which are not judged: "
		_, got, _ := strings.Cut(rec.Approximate, said)
		if got != v.want {
			t.Errorf("%s: not judged %q, want %q, in %q", v.name, got, v.want, rec.Approximate)
		}
		if v.want == "" && v.asLive && (rec.Approximate != "" || rec.Verified.Different != 0 || rec.Verified.Findings != len(l.log)-rec.Verified.Events) {
			t.Errorf("%s: approximate %q, %s of %d", v.name, rec.Approximate, encoded(t, rec.Verified), len(l.log))
		}
	}
}

// A recording holds no answers, so what asks for them is named.
func TestRecordingsNameTheRulesThatAskADatabase(t *testing.T) {
	dir := t.TempDir()
	events, err := json.Marshal(map[string]any{"type": "request", "time": "2026-09-13T08:00:00Z", "service": "issues", "operation": "create", "access": "write", "outcome": "success", "count": 50})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), append(events, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	o := shipped(t)
	o.Catalogue, o.Rules = catalogue.Empty(), rulesOf(t, stuckRules)
	rec, err := Run(t.Context(), dir, o)
	if err != nil || !slices.Equal(rec.NotJudged, []string{"Stuck"}) || rec.Approximate != "" {
		t.Errorf("not judged %q, approximate %q, %v", rec.NotJudged, rec.Approximate, err)
	}
}
