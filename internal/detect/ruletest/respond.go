package ruletest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Message is what one place was sent.
type Message struct {
	Receiver string
	Kind     string // pagerduty, slack, webhook
	Action   string // open, raise, update, note, acknowledge, close
	Text     string // as people read it
}

// Silence is one that is in force during a test.
type Silence struct {
	Matchers []string
	From, To time.Time
}

// Rehearsal is what a Responder is made of.
type Rehearsal struct {
	File     string // of the routes, for messages
	Routes   []byte
	Silences []Silence
}

// Responder stands for the third loop: what the detector concludes goes in, what people are sent comes out. It is used for one test.
type Responder interface {
	// Hear takes the events of a tick that ended at now; there may be none. Nothing is sent to anybody.
	Hear(now time.Time, events []incident.Event) ([]Message, error)
}

// Options are what tests may need besides the detector.
type Options struct {
	// Respond makes the responder of a test that looks at notifications; nil where none can be had.
	Respond func(Rehearsal) (Responder, error)
}

// routes finds the routes that a test means.
func (t *test) routes(fsys fs.FS, file string, common *yaml.Node) (name string, data []byte, err error) {
	node := &t.Routes
	if node.IsZero() {
		node = common
	}
	if node.Kind == yaml.MappingNode {
		plain := *node
		clean(&plain) // positions keep the file's name in comments
		data, err := yaml.Marshal(&plain)
		return file, data, err
	}
	if !node.IsZero() {
		name = path.Join(path.Dir(file), node.Value)
		data, err = fs.ReadFile(fsys, name)
		return name, data, err
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		name = path.Join(dir, "routes.yaml")
		if data, err = fs.ReadFile(fsys, name); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return name, data, err
		}
		if dir == "." {
			return "", nil, t.Pos.Errorf("notifications are expected, but no routes.yaml is here or above; name one with routes")
		}
	}
}

func clean(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	n.Content = slices.Clone(n.Content)
	for i, c := range n.Content {
		x := *c
		clean(&x)
		n.Content[i] = &x
	}
}

// responder makes what the test's notifications come from; nil where it does not look at any.
func (t *test) responder(fsys fs.FS, file string, common *yaml.Node, begin time.Time, o Options) (Responder, error) {
	if !slices.ContainsFunc(t.Expect, func(e expectation) bool { return e.Notifications != nil }) {
		if len(t.Silences) > 0 {
			return nil, t.Silences[0].Pos.Errorf("a silence shows in notifications only, and none are expected")
		}
		return nil, nil
	}
	if o.Respond == nil {
		return nil, t.Pos.Errorf("notifications can't be looked at here")
	}
	name, data, err := t.routes(fsys, file, common)
	if err != nil {
		return nil, err
	}
	r := Rehearsal{File: name, Routes: bytes.TrimSpace(data)}
	for _, s := range t.Silences {
		r.Silences = append(r.Silences, Silence{Matchers: s.Matchers, From: begin.Add(s.From.Std()), To: begin.Add(s.To.Std())})
	}
	return o.Respond(r)
}

func (w *wantMessage) like(m *Message) bool {
	return w.Receiver == m.Receiver && w.Action == m.Action && either(w.Kind, m.Kind)
}

func (w *wantMessage) matches(m *Message) bool {
	return w.like(m) && strings.Contains(m.Text, w.Says) && (w.Text == "" || strings.TrimSpace(w.Text) == strings.TrimSpace(m.Text))
}

func (w *wantMessage) String() string {
	s := strings.TrimSpace(w.Kind + " " + w.Action + " to " + w.Receiver)
	if w.Says != "" {
		s += fmt.Sprintf(" saying %q", w.Says)
	}
	return s
}

// aside tells messages that a list may leave out.
func (m *Message) aside() bool { return m.Action == "update" || m.Action == "note" }

func sayMessage(m Message) string {
	first, _, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
	return fmt.Sprintf("%s %s to %s (%s)", m.Kind, m.Action, m.Receiver, first)
}

func (p *player) compareMessages(e *expectation, report reporter) {
	got := slices.Clone(p.messages)
	for i := range *e.Notifications {
		w := &(*e.Notifications)[i]
		at := slices.IndexFunc(got, func(m Message) bool { return w.matches(&m) })
		if at >= 0 {
			got = slices.Delete(got, at, at+1)
			continue
		}
		if at = slices.IndexFunc(got, func(m Message) bool { return w.like(&m) }); at < 0 {
			report(w.Pos, "want %s, have %s", w, names(slices.DeleteFunc(slices.Clone(p.messages), func(m Message) bool { return m.aside() && m.Action != w.Action }), sayMessage))
			continue
		}
		want := w.Text
		if want == "" {
			report(w.Pos, "want %s, it says:\n%s", w, strings.TrimSpace(got[at].Text))
		} else {
			report(w.Pos, "%s to %s says otherwise (- wanted, + sent):\n%s", w.Action, w.Receiver, lineDiff(want, got[at].Text))
		}
		got = slices.Delete(got, at, at+1)
	}
	for i := range got {
		if !got[i].aside() {
			report(e.Pos, "an unexpected message: %s", sayMessage(got[i]))
		}
	}
	p.messages = nil
}

// lineDiff shows two texts line by line: what both have, what only one has.
func lineDiff(want, got string) string {
	a, b := strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(got), "\n")
	common := make([][]int, len(a)+1) // lengths of the longest common part of what is left
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out.WriteString("  " + a[i] + "\n")
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out.WriteString("- " + a[i] + "\n")
			i++
		default:
			out.WriteString("+ " + b[j] + "\n")
			j++
		}
	}
	return strings.TrimRight(out.String(), "\n")
}

var _ fmt.Stringer = (*wantMessage)(nil)

// allRules are the rule files of a folder and those below, for tests of routes: an incident comes from all of them.
func allRules(fsys fs.FS, dir string) (names []string, err error) {
	err = fs.WalkDir(fsys, dir, func(p string, d fs.DirEntry, err error) error {
		base := path.Base(p)
		if err == nil && !d.IsDir() && strings.HasSuffix(base, ".yaml") && !strings.HasSuffix(base, "_test.yaml") && base != "routes.yaml" {
			names = append(names, p)
		}
		return err
	})
	if err == nil && len(names) == 0 {
		err = strictyaml.Pos{File: dir}.Errorf("no rules are here or below")
	}
	return names, err
}
