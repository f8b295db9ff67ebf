package respond

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/route"
)

var update = flag.Bool("update", false, "write what timelines give into their files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTimelines runs the scripts of testdata/timelines: lines that begin with "> " are what the planner does, checked
// against the file; -update writes them.
//
//	# comment (a case's source)
//	routes …           the lines up to "end" are a routes file; kinds are pager_configs, chat_configs, hook_configs
//	at 5m              wall clock since the start; plans and delivers all that is due
//	ID TYPE [k=v…]     an event of incident ID: severity, page, muted, service, reason, state is kept by type
//	lag 20m            how far event time is behind from now on
//	answer PLACE CLASS what the place answers from now on: ok, down, unsure, refuse, limit=7s
//	silence MATCHER for DURATION
//	restart            a new planner over the stored records and the log
//	picked PLACE       takes a step but gives no outcome, as if killed while sending; "restart" follows
func TestTimelines(t *testing.T) {
	files, err := filepath.Glob("testdata/timelines/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no timelines", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newScript(t).run(string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(data) {
				t.Errorf("the timeline differs (go test -update writes it); got\n%s", got)
			}
		})
	}
}

type script struct {
	t       *testing.T
	p       *Planner
	cfg     *route.Config
	places  []Place
	now     time.Time
	start   time.Time
	lag     time.Duration
	tick    uint64
	inc     map[string]*incident.Incident
	log     *MemoryLog
	cursor  Cursor
	stored  map[string][]byte
	answers map[string]string
	silence []Silence
	out     strings.Builder
}

var testStart = time.Date(2026, 9, 14, 3, 0, 0, 0, time.UTC) // a Monday

const defaultRoutes = `
route:
  receiver: chat
  routes:
    - matchers: ['page="true"']
      receiver: oncall
receivers:
  - name: oncall
    pager_configs: [{place: pager}]
    chat_configs: [{place: chat}]
  - name: chat
    chat_configs: [{place: chat}]
`

func decodePlace(n *yaml.Node) (any, error) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "place" {
			return n.Content[i+1].Value, nil
		}
	}
	return nil, fmt.Errorf("a place is missing")
}

var testKinds = []route.Kind{
	{Key: "pager_configs", Name: "pager", Pages: true, Decode: decodePlace},
	{Key: "chat_configs", Name: "chat", Decode: decodePlace},
	{Key: "hook_configs", Name: "hook", Decode: decodePlace},
}

func testPlaces(cfg *route.Config) []Place {
	var out []Place
	for _, r := range cfg.Receivers {
		for _, i := range r.Integrations {
			id := i.Config.(string)
			if k := slices.IndexFunc(out, func(p Place) bool { return p.ID == id }); k >= 0 {
				out[k].Receivers = append(out[k].Receivers, r.Name.Value)
				continue
			}
			chat := i.Kind.Name == "chat"
			out = append(out, Place{ID: id, Receivers: []string{r.Name.Value}, Kind: i.Kind.Name, Pages: i.Kind.Pages, Edits: chat, Notes: chat, Sender: nil})
		}
	}
	return out
}

func newScript(t *testing.T) *script {
	s := &script{t: t, now: testStart, start: testStart, inc: map[string]*incident.Incident{}, log: &MemoryLog{}, answers: map[string]string{}, stored: map[string][]byte{}}
	s.routes(defaultRoutes)
	return s
}

func (s *script) routes(text string) {
	cfg, err := route.Load("routes.yaml", []byte(text), testKinds)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cfg, s.places = cfg, testPlaces(cfg)
	if s.p == nil {
		s.p = NewPlanner(cfg, s.places, Settings{})
	} else {
		s.p.SetRoutes(cfg, s.places)
	}
}

func (s *script) run(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&s.out, line)
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		switch f[0] {
		case "routes":
			var b strings.Builder
			for i++; lines[i] != "end"; i++ {
				fmt.Fprintln(&s.out, lines[i])
				fmt.Fprintln(&b, lines[i])
			}
			fmt.Fprintln(&s.out, lines[i])
			s.routes(b.String())
		case "at":
			s.at(s.duration(f[1]))
		case "lag":
			s.lag = s.duration(f[1])
		case "answer":
			s.answers[f[1]] = f[2]
		case "silence":
			ms, err := route.ParseMatchers(f[1])
			if err != nil {
				s.t.Fatal(err)
			}
			s.silence = append(s.silence, Silence{Matchers: ms, StartsAt: s.now, EndsAt: s.now.Add(s.duration(f[3]))})
			s.p.SetSilences(s.silence)
			s.deliver()
		case "restart":
			s.restart()
		case "picked":
			step, ok, _ := s.p.Take(f[1], s.now)
			s.save()
			s.say("picked %v %s %s", ok, step.Delivery.Action, step.Incident)
		case "plan": // without delivering, as between a decision and its sending
			s.p.SetHead(s.head())
			s.p.Plan(s.now)
			s.save()
		default:
			s.event(f)
		}
	}
	return s.out.String()
}

func (s *script) head() Head { return Head{Tick: s.tick, To: s.now.Add(-s.lag), Clock: s.now} }

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) say(format string, args ...any) {
	fmt.Fprintf(&s.out, "> "+format+"\n", args...)
}

// at moves the clock there in steps of ten seconds, as the loop's ticker would.
func (s *script) at(to time.Duration) {
	for {
		s.p.SetHead(s.head())
		s.p.Plan(s.now)
		s.save()
		s.deliver()
		if !s.now.Before(s.start.Add(to)) {
			return
		}
		s.now = s.now.Add(min(10*time.Second, s.start.Add(to).Sub(s.now)))
	}
}

func (s *script) save() {
	for k, v := range s.p.Dirty() {
		if v == nil {
			delete(s.stored, k)
		} else {
			s.stored[k] = v
		}
	}
	s.cursor = Cursor{Tick: s.tick}
}

func (s *script) deliver() {
	var ids []string
	for _, p := range s.places {
		ids = append(ids, p.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(s.p.places)) { // those that the routes no longer name have a worker, too
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		for range 1000 {
			step, ok, _ := s.p.Take(id, s.now)
			if !ok {
				break
			}
			s.save()
			s.outcome(step)
			s.save()
		}
	}
}

func (s *script) outcome(step Step) {
	d := step.Delivery
	text := fmt.Sprintf("%s %s %s %s", s.now.Sub(s.start), step.Place, d.Action, step.Incident)
	switch d.Action {
	case ActionOpen, ActionRaise:
		text += " " + step.Said.Severity.String()
		if d.Uncertain {
			text += " uncertain"
		}
		if sum := d.Notice.Summary; sum != nil {
			text += fmt.Sprintf(" %q +%d", strings.Join(sum.Lines, " | "), sum.More)
		}
	case ActionUpdate, ActionClose:
		text += " " + d.Notice.Incident.State.String()
	case ActionNote:
		var all []string
		for _, n := range d.Notes {
			all = append(all, n.Text)
		}
		text += fmt.Sprintf(" %q", strings.Join(all, " | "))
	case ActionAcknowledge:
	}
	var err *SendError
	answer := s.answers[step.Place]
	switch {
	case answer == "down":
		err = &SendError{Class: Retry, Reason: ReasonNetwork, Err: os.ErrDeadlineExceeded}
	case answer == "unsure":
		err = &SendError{Class: Retry, Reason: ReasonTimeout, Unknown: true, Err: os.ErrDeadlineExceeded}
	case answer == "refuse":
		err = &SendError{Class: Permanent, Reason: ReasonRefused, Err: os.ErrInvalid}
	case strings.HasPrefix(answer, "limit="):
		err = &SendError{Class: RateLimited, Reason: ReasonRateLimited, After: s.duration(answer[6:]), Err: os.ErrInvalid}
		s.answers[step.Place] = "ok"
	}
	if err == nil {
		s.say("%s", text)
	} else if s.p.records[step.Record].Attempts == 1 {
		s.say("%s FAILED %s", text, err.Reason)
	}
	s.p.Done(step, Receipt{}, err, s.now)
}

func (s *script) restart() {
	s.p = NewPlanner(s.cfg, s.places, Settings{})
	s.p.SetSilences(s.silence)
	values := map[string][]byte{}
	for k, v := range s.stored {
		values[k] = v
	}
	if bad := s.p.Restore(values, s.now); len(bad) > 0 {
		s.t.Fatal("unreadable", bad)
	}
	events, _ := s.log.Open(s.t.Context(), s.now.Add(-24*time.Hour))
	for _, e := range events {
		s.p.Observe(e, false)
	}
	events, _, _, _ = s.log.After(s.t.Context(), s.cursor, 1_000_000)
	for _, e := range events {
		s.p.Observe(e, true)
	}
}

func (s *script) event(f []string) {
	id, typ := f[0], incident.EventType(f[1])
	i := s.inc[id]
	if i == nil {
		i = &incident.Incident{ID: id, Title: "title of " + id, StartedAt: s.now, Labels: map[string]string{}}
		s.inc[id] = i
	}
	at := s.now.Add(-s.lag)
	switch typ {
	case incident.EventSuspected:
		i.State = incident.Suspected
	case incident.EventDeclared:
		i.State, i.DeclaredAt = incident.Declared, at
	case incident.EventAcknowledged:
		i.State, i.AcknowledgedAt = incident.Acknowledged, at
	case incident.EventReopened:
		i.State = incident.Declared
	case incident.EventMitigated:
		i.State = incident.Mitigated
	case incident.EventResolved:
		i.State, i.ResolvedAt = incident.Resolved, at
	case incident.EventDismissed:
		i.State = incident.Dismissed
	case incident.EventMerged:
		i.State = incident.Merged
	default: // the others change no state
	}
	reason := ""
	for _, kv := range f[2:] {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case "severity":
			if err := i.Severity.UnmarshalText([]byte(v)); err != nil {
				s.t.Fatal(err)
			}
		case "page":
			i.Page = v != "no"
		case "muted":
			i.Muted = v
		case "into":
			i.MergedInto = v
		case "service":
			i.Services = append(i.Services, v)
		case "reason":
			reason = v
		default:
			i.Labels[k] = v
		}
	}
	s.tick++
	i.Sequence++
	raw, _ := json.Marshal(i)
	var after incident.Incident
	if err := json.Unmarshal(raw, &after); err != nil {
		s.t.Fatal(err)
	}
	e := incident.Event{Incident: id, Sequence: i.Sequence, At: at, Clock: s.now, Type: typ, Reason: reason, Tick: s.tick, After: after}
	s.log.Append(e)
	s.p.Observe(e, true)
}
