package ruletest

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// longest bounds a test's event time, so that a slip of the pen does not run for ever.
const longest = 7 * 24 * time.Hour

// Result is the outcome of one test, or of a file that cannot be read.
type Result struct {
	File string
	Test string // "" where the file itself is at fault
	// Diff says what was wanted and what was found, with the place in the file; "" for a test that passed.
	Diff string
}

// OK tells whether the test passed.
func (r Result) OK() bool { return r.Diff == "" }

// Run is RunWith without anything besides the detector.
func Run(fsys fs.FS, root string) []Result { return RunWith(fsys, root, Options{}) }

// RunWith runs every *_test.yaml below root that has its rule file beside it, in order of name. One beside routes.yaml plays against
// all rules of its folder and of those below.
func RunWith(fsys fs.FS, root string, o Options) []Result {
	var out []Result
	err := fs.WalkDir(fsys, root, func(p string, d fs.DirEntry, err error) error {
		rules, isTest := strings.CutSuffix(p, "_test.yaml")
		if err != nil || d.IsDir() || !isTest {
			return err
		}
		if _, err := fs.Stat(fsys, rules+".yaml"); err != nil {
			return nil // the test of something else
		}
		out = append(out, runFile(fsys, p, rules+".yaml", o)...)
		return nil
	})
	if err != nil {
		out = append(out, Result{File: root, Diff: err.Error()})
	}
	return out
}

func runFile(fsys fs.FS, name, rules string, o Options) (out []Result) {
	fail := func(err error) []Result { return []Result{{File: name, Diff: err.Error()}} }
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return fail(err)
	}
	var f file
	if err := strictyaml.Decode(name, data, &f); err != nil {
		return fail(err)
	}
	set := &rule.Set{Revision: "test"}
	all := []string{rules}
	if path.Base(rules) == "routes.yaml" {
		if all, err = allRules(fsys, path.Dir(name)); err != nil {
			return fail(err)
		}
	}
	for _, r := range f.RuleFiles {
		all = append(all, path.Join(path.Dir(name), r))
	}
	for _, p := range all {
		data, err := fs.ReadFile(fsys, p)
		if err != nil {
			return fail(err)
		}
		parsed, err := rule.Parse(p, data)
		if err != nil {
			return fail(err)
		}
		set.Groups = append(set.Groups, parsed.Groups...)
	}
	for i := range f.Tests {
		t := &f.Tests[i]
		node := &t.Catalogue
		if node.IsZero() {
			node = &f.Catalogue
		}
		if t.TimeZone == "" {
			t.TimeZone = f.TimeZone
		}
		diff, err := t.run(set, node, func(begin time.Time) (Responder, error) { return t.responder(fsys, name, &f.Routes, begin, o) })
		if err != nil {
			diff = err.Error()
		}
		out = append(out, Result{File: name, Test: t.Name, Diff: diff})
	}
	return out
}

func readCatalogue(n *yaml.Node) (*catalogue.Catalogue, error) {
	if n.IsZero() {
		return catalogue.Empty(), nil
	}
	text, err := yaml.Marshal(n)
	if err != nil {
		return nil, err
	}
	return catalogue.Parse("catalogue", text)
}

// run plays the input bucket by bucket and compares at each time that is asked for.
func (t *test) run(set *rule.Set, node *yaml.Node, responder func(begin time.Time) (Responder, error)) (string, error) {
	cat, err := readCatalogue(node)
	if err != nil {
		return "", err
	}
	var errs strictyaml.Errors
	for i := range t.Input {
		l := &t.Input[i]
		if err := l.check(); err != nil {
			errs.Add(l.Pos, err)
		} else if l.Result != "" && !asks(set, l.Result) {
			errs.Add(l.Pos, l.Pos.Errorf("result: %s is no sql rule of these files", l.Result))
		}
	}
	end := time.Duration(0)
	for _, e := range t.Expect {
		end = max(end, e.At.Std())
	}
	if end > longest {
		errs.Add(t.Pos, t.Pos.Errorf("the test looks %s ahead, at most %s", strictyaml.Duration(end), strictyaml.Duration(longest)))
	}
	if err := errs.Err(); err != nil {
		return "", err
	}
	begin, err := t.begin()
	if err != nil {
		return "", err
	}
	answer, err := responder(begin)
	if err != nil {
		return "", err
	}
	start := begin.UTC()
	expect := slices.Clone(t.Expect)
	slices.SortStableFunc(expect, func(a, b expectation) int { return cmp.Compare(a.At, b.At) })
	p := player{begin: begin, detector: detect.New(detect.Config{Rules: set, Catalogue: cat}), findings: map[incident.FindingKey]incident.Finding{}, incidents: map[string]incident.Incident{}}
	carries := make([]fractions, len(t.Input))
	var diff strings.Builder
	for b, next := time.Duration(0), 0; next < len(expect); b += signal.BucketSize {
		for next < len(expect) && expect[next].At.Std() <= b {
			p.compare(&diff, &expect[next])
			next++
		}
		in := detect.Inputs{Tick: detect.Tick{Number: uint64(b/signal.BucketSize) + 1, From: start.Add(b), To: start.Add(b + signal.BucketSize)}}
		for i := range t.Input {
			t.Input[i].feed(&in, start, b, &carries[i])
		}
		in.Cells = merge(in.Cells)
		in.Tick.Answers = t.answers(set, start, b)
		out := p.detector.Tick(in)
		p.see(out)
		if answer == nil {
			continue
		}
		sent, err := answer.Hear(in.Tick.To, out.Events)
		if err != nil {
			return "", err
		}
		p.messages = append(p.messages, sent...)
	}
	return diff.String(), nil
}

// player keeps what the detector has said so far.
type player struct {
	detector  *detect.Detector
	findings  map[incident.FindingKey]incident.Finding
	order     []string // incidents by first sight
	incidents map[string]incident.Incident
	warnings  []incident.Warning
	messages  []Message // since they were looked at
	begin     time.Time // in the test's time zone
}

func (p *player) see(o detect.Outputs) {
	for _, t := range o.Transitions {
		k := t.Finding.Key
		k.Rule = t.Finding.Rule
		if t.Finding.State == incident.Inactive {
			delete(p.findings, k)
			continue
		}
		p.findings[k] = t.Finding
	}
	for _, e := range o.Events {
		if _, ok := p.incidents[e.Incident]; !ok {
			p.order = append(p.order, e.Incident)
		}
		p.incidents[e.Incident] = e.After
	}
	p.warnings = append(p.warnings, o.Warnings...)
}

func (p *player) compare(diff *strings.Builder, e *expectation) {
	report := func(pos strictyaml.Pos, format string, args ...any) {
		when := e.At.String()
		if zone := p.begin.Location(); zone != time.UTC {
			when += p.begin.Add(e.At.Std()).Format(" (Mon 15:04:05 MST)")
		}
		fmt.Fprintf(diff, "%s: at %s: %s\n", pos, when, fmt.Sprintf(format, args...))
	}
	if e.Findings != nil {
		p.compareFindings(e, report)
	}
	if e.Incidents != nil {
		p.compareIncidents(e, report)
	}
	if e.Notifications != nil {
		p.compareMessages(e, report)
	}
	if e.Warnings != nil {
		got := slices.Clone(p.warnings)
		for _, w := range *e.Warnings {
			i := slices.IndexFunc(got, func(g incident.Warning) bool {
				return g.Resource == w.Resource && (w.Metric == "" || w.Metric == g.Metric) &&
					(w.Suspect == "" || len(g.Suspects) > 0 && g.Suspects[0].ID == w.Suspect)
			})
			if i < 0 {
				report(w.Pos, "want a warning about %s %s (suspect %q), have %s", w.Resource, w.Metric, w.Suspect, names(p.warnings, sayWarning))
				continue
			}
			got = slices.Delete(got, i, i+1)
		}
		for _, g := range got {
			report(e.Pos, "an unexpected warning: %s", sayWarning(g))
		}
	}
}

type reporter func(pos strictyaml.Pos, format string, args ...any)

func (p *player) compareFindings(e *expectation, report reporter) {
	var got []incident.Finding
	for _, f := range p.findings {
		got = append(got, f)
	}
	slices.SortFunc(got, func(a, b incident.Finding) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), a.Key.Compare(b.Key))
	})
	all := slices.Clone(got)
	for _, w := range *e.Findings {
		i := slices.IndexFunc(got, w.matches)
		if i < 0 {
			if i = slices.IndexFunc(got, w.like); i < 0 {
				report(w.Pos, "want %s, have %s", w.String(), names(all, sayFinding))
				continue
			}
			report(w.Pos, "want %s, it has the %s", w.String(), w.unsaid(got[i]))
		}
		got = slices.Delete(got, i, i+1)
	}
	for _, f := range got {
		if f.State == incident.Firing && (f.Kind != "high_impact" || f.Key.Attributes == "") { // one by points has a finding for each incident
			report(e.Pos, "fires unexpectedly: %s", sayFinding(f))
		}
	}
}

func (p *player) compareIncidents(e *expectation, report reporter) {
	var got []incident.Incident
	for _, id := range p.order {
		if x := p.incidents[id]; x.State.Open() {
			got = append(got, x)
		}
	}
	all := slices.Clone(got)
	for _, w := range *e.Incidents {
		i := slices.IndexFunc(got, w.matches)
		if i < 0 {
			report(w.Pos, "want %s, have %s", w.String(), names(all, sayIncident))
			continue
		}
		got = slices.Delete(got, i, i+1)
	}
	for _, x := range got {
		report(e.Pos, "an unexpected incident: %s", sayIncident(x))
	}
}
