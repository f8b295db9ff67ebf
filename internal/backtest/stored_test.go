package backtest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/backtest/explain"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// lived is a stored history in memory, with what the live detector said.
type lived struct {
	ins     []detect.Inputs
	states  map[uint64][]byte
	said    *journal
	log     []incident.Conclusion
	counts  map[uint64]int
	sources map[string]detect.Source
	asked   int
}

var _ History = (*lived)(nil)

func (l *lived) Ticks(_ context.Context, from, to time.Time) (out []detect.Tick, _ error) {
	for i := range l.ins {
		if t := l.ins[i].Tick; t.To.After(from) && !t.To.After(to) {
			out = append(out, t)
		}
	}
	return out, nil
}

func (l *lived) Claimed(_ context.Context, from, to time.Time) (out []detect.Tick, _ error) {
	for i := range l.ins {
		if t := l.ins[i].Tick; t.Clock.After(from) && (t.Number == 1 || !t.To.After(to)) {
			out = append(out, t)
		}
	}
	return out, nil
}

func (l *lived) First(context.Context) (detect.Tick, bool, error) {
	if len(l.ins) == 0 || l.ins[0].Tick.Number != 1 {
		return detect.Tick{}, false, nil
	}
	return l.ins[0].Tick, true, nil
}

func (l *lived) Next(ctx context.Context, from, to time.Time) (time.Time, error) {
	l.asked++
	ticks, err := l.Ticks(ctx, from, to)
	if err != nil || len(ticks) == 0 {
		return time.Time{}, err
	}
	return slices.MinFunc(ticks, func(a, b detect.Tick) int { return a.To.Compare(b.To) }).To, nil
}

func (l *lived) Inputs(_ context.Context, ticks []detect.Tick, _ ...signal.Stream) (out []detect.Inputs, _ error) {
	if len(ticks) == 0 {
		return nil, nil
	}
	for i := range l.ins {
		if n := l.ins[i].Tick.Number; n >= ticks[0].Number && n <= ticks[len(ticks)-1].Number {
			out = append(out, l.ins[i])
		}
	}
	return out, nil
}

func (l *lived) Counts(context.Context, []detect.Tick) (map[uint64]int, error) { return l.counts, nil }

func (l *lived) Said(_ context.Context, ticks []detect.Tick) (out []incident.Conclusion, _ error) {
	for _, c := range l.log {
		if c.Tick >= ticks[0].Number && c.Tick <= ticks[len(ticks)-1].Number {
			out = append(out, c)
		}
	}
	return out, nil
}

func (l *lived) Source(_ context.Context, kind, revision string) (detect.Source, bool, error) {
	s, ok := l.sources[kind+revision]
	return s, ok, nil
}

func (l *lived) State(_ context.Context, tick uint64) (state []byte, number uint64, _ error) {
	for n, s := range l.states {
		if n <= tick && n > number {
			state, number = s, n
		}
	}
	return state, number, nil
}

// live runs the demo's scenario through a detector as the daemon does: ticks of uneven length, rows that come late, a
// checkpoint now and then, and a restart from one.
func live(t *testing.T, set *rule.Set, cat *catalogue.Catalogue) *lived {
	t.Helper()
	s, err := scenario.Load(deploy.Demo, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	l := &lived{states: map[uint64][]byte{}, said: newJournal(), counts: map[uint64]int{}}
	d := detect.New(detect.Config{Rules: set, Catalogue: cat})
	tl := memory.New()
	var late []signal.Cell
	var at time.Time
	n := 0
	for sl := range s.Generate(1) {
		if n++; at.IsZero() {
			at = sl.From
		}
		in := cellsOf(sl)
		tl.AddCells(late)
		late = nil
		if n%7 == 0 && len(in) > 3 {
			late, in = in[:3], in[3:]
		}
		tl.AddCells(in)
		tl.AddGauges(sl.Gauges)
		tl.AddTickets(sl.Tickets)
		tl.AddChanges(sl.Changes)
		if n%3 == 1 {
			continue
		}
		tl.SetProgress(sl.To, sl.To)
		p, err := tl.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tick := detect.Tick{Number: uint64(len(l.ins) + 1), From: at, To: sl.To, Marks: p.Marks, Clock: p.Clock, Rules: set.Revision, Catalogue: cat.Revision, Binary: "then"}
		claimed, err := tl.Claim(t.Context(), tick)
		if err != nil {
			t.Fatal(err)
		}
		out := d.Tick(claimed)
		if tick.Number%50 == 0 {
			if out.Checkpoint, err = d.Snapshot(); err != nil {
				t.Fatal(err)
			}
			l.states[tick.Number] = out.Checkpoint
		}
		if err := tl.Commit(t.Context(), tick, out); err != nil {
			t.Fatal(err)
		}
		l.ins = append(l.ins, claimed)
		l.counts[tick.Number] = claimed.Rows()
		l.log = append(l.log, conclusions(tick.Number, &out)...)
		l.said.add(out.Events, out.Warnings, out.Transitions)
		if at = sl.To; at.After(time.Date(2026, 9, 13, 9, 10, 0, 0, time.UTC)) {
			break
		}
		if tick.Number == 700 {
			d = detect.New(detect.Config{Rules: set, Catalogue: cat})
			if err := d.Restore(l.states[700]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func cellsOf(sl *scenario.Slice) (out []signal.Cell) {
	at := map[signal.Key]int{}
	for i := range sl.Requests {
		r := &sl.Requests[i]
		k := signal.Key{Path: r.Path, Attributes: r.Attributes}
		j, ok := at[k]
		if !ok {
			j = len(out)
			at[k] = j
			out = append(out, signal.Cell{Bucket: signal.BucketOf(r.Time), Key: k})
		}
		out[j].Count(r)
	}
	slices.SortFunc(out, func(a, b signal.Cell) int { return a.Key.Compare(b.Key) })
	return out
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A backtest of stored history says what the live detector said, byte for byte: from its beginning, and from the middle
// of the trouble.
func TestStoredHistoryIsJudgedAsLive(t *testing.T) {
	o := shipped(t)
	s, err := scenario.Load(deploy.Demo, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	if o.Catalogue, err = catalogue.Parse("catalogue.yaml", s.Catalogue); err != nil {
		t.Fatal(err)
	}
	l := live(t, o.Rules, o.Catalogue)
	if len(l.said.transitions) < 100 || len(l.said.events) < 20 {
		t.Fatalf("a dull history: %d transitions, %d events", len(l.said.transitions), len(l.said.events))
	}
	end := l.ins[len(l.ins)-1].Tick.To
	for _, from := range []time.Time{l.ins[0].Tick.From.Add(-time.Second), time.Date(2026, 9, 13, 8, 47, 0, 0, time.UTC)} {
		want := newJournal()
		for i, tr := range l.said.transitions {
			if tr.At.After(from) {
				want.transitions, want.findings = append(want.transitions, tr), append(want.findings, l.said.findings[i])
			}
		}
		var events []any
		for _, e := range l.said.events {
			if e.At.After(from) {
				events = append(events, e)
			}
		}
		r := &storedReplay{Options: o, history: l, journal: newJournal()}
		first, err := firstTick(t.Context(), l, from, end)
		if err != nil {
			t.Fatal(err)
		}
		begin, err := r.prepare(t.Context(), first, from)
		if err != nil {
			t.Fatal(err)
		}
		for at := begin; at.Before(end); at = at.Add(historyChunk) {
			if err := r.chunk(t.Context(), at, minTime(end, at.Add(historyChunk)), first.Number); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.why) > 0 {
			t.Errorf("from %s it is approximate: %s", from, r.why)
		}
		if encoded(t, r.journal.transitions) != encoded(t, want.transitions) {
			t.Errorf("from %s: %d transitions, live %d, and they differ", from, len(r.journal.transitions), len(want.transitions))
		}
		if encoded(t, r.journal.events) != encoded(t, events) {
			t.Errorf("from %s: %d events, live %d, and they differ", from, len(r.journal.events), len(events))
		}
	}
	from := time.Date(2026, 9, 13, 8, 47, 0, 0, time.UTC)
	tellsWhatDiffers(t, l, from, o)
	underWay(t, l, from, o)
	rec, err := RunStored(t.Context(), l, from, end, o)
	if err != nil || rec.Approximate != "" || len(rec.Incidents) == 0 || len(rec.Traffic) == 0 {
		t.Errorf("%d incidents, approximate %q, %v", len(rec.Incidents), rec.Approximate, err)
	}
	// Months in which nothing ran are passed over, not gone through hour by hour.
	l.asked = 0
	if long, err := RunStored(t.Context(), l, from.AddDate(0, -9, 0), end.AddDate(0, 3, 0), o); err != nil || len(long.Findings) != len(l.said.findings) || l.asked > 10 {
		t.Errorf("%d findings, live %d, after %d questions, %v", len(long.Findings), len(l.said.findings), l.asked, err)
	}
	// By other rules than those of then, or without the state of then, it is not the same, and it says so.
	other := *o.Rules
	other.Revision = "another"
	for _, v := range []struct {
		rules  *rule.Set
		states map[uint64][]byte
	}{{&other, l.states}, {o.Rules, nil}} {
		r := &storedReplay{Options: Options{Rules: v.rules, Catalogue: o.Catalogue}, history: &lived{ins: l.ins, states: v.states}, journal: newJournal()}
		first, err := firstTick(t.Context(), l, from, end)
		if err != nil {
			t.Fatal(err)
		}
		if begin, err := r.prepare(t.Context(), first, from); err != nil || len(r.why) == 0 || !begin.Equal(from.Add(-warmUp)) {
			t.Errorf("from %s, approximate %q, %v", begin, r.why, err)
		}
	}
	if _, err = RunStored(t.Context(), l, end.Add(time.Hour), end.Add(2*time.Hour), o); err == nil {
		t.Error("a span without ticks is not refused")
	}
}

// tellsWhatDiffers holds replays to what was said live, and what makes them approximate to being told.
func tellsWhatDiffers(t *testing.T, l *lived, from time.Time, o Options) {
	t.Helper()
	o.Verify, o.Binary = true, "then"
	late := 0
	for i := range l.ins {
		if l.ins[i].Tick.To.After(from) && len(l.ins[i].Cells) > 0 {
			late = i
			break
		}
	}
	short := *l
	short.ins = slices.Clone(l.ins)
	short.ins[late].Cells = short.ins[late].Cells[1:]
	other := *o.Rules
	other.Revision = "another"
	stands := o
	stands.AsLive, stands.Rules = true, &other
	now := o
	now.Binary = "now"
	for _, v := range []struct {
		name string
		h    *lived
		o    Options
		want string
		same bool
	}{
		{"all is there", l, o, "", true},
		{"a row has expired", &short, o, "not complete any more", false},
		{"another program", l, now, "another program (then, this is now)", true},
		{"the rules of then are not stored", l, stands, "are not stored, others stand in", true}, // the others are the same
	} {
		rec, err := RunStored(t.Context(), v.h, from, from.Add(8*time.Minute), v.o)
		if err != nil {
			t.Fatal(err)
		}
		if (rec.Approximate == "") != (v.want == "") || !strings.Contains(rec.Approximate, v.want) {
			t.Errorf("%s: approximate %q, want %q", v.name, rec.Approximate, v.want)
		}
		if x := rec.Verified; (x.Different == 0) != v.same || x.Ticks == 0 || x.Findings == 0 || x.Events == 0 {
			t.Errorf("%s: %s", v.name, encoded(t, x))
		}
	}
}

// What a live detector is at work on is claimed, and says nothing yet: that is no difference. Where ticks say nothing that did before, it is.
func underWay(t *testing.T, l *lived, from time.Time, o Options) {
	t.Helper()
	o.Verify = true
	for _, forgets := range []int{1, 2} {
		cut := *l
		cut.log, cut.counts = nil, maps.Clone(l.counts)
		var said uint64 // the newest tick of the span with a conclusion
		var to time.Time
		for i := range l.ins {
			k := &l.ins[i].Tick
			if k.To.After(from) && !k.To.After(from.Add(8*time.Minute)) && slices.ContainsFunc(l.log, func(c incident.Conclusion) bool { return c.Tick == k.Number }) {
				said, to = k.Number, k.To
			}
		}
		for _, c := range l.log {
			if c.Tick < said {
				cut.log = append(cut.log, c)
			}
		}
		if forgets == 1 {
			delete(cut.counts, said)
		}
		rec, err := RunStored(t.Context(), &cut, from, to, o)
		if err != nil {
			t.Fatal(err)
		}
		if x := rec.Verified; x.Different != forgets-1 || x.Findings == 0 {
			t.Errorf("way %d: %s", forgets, encoded(t, x))
		}
	}
}

// The first tick of all takes in a backlog and ends where ingest had come to; those after it go back to its beginning. A replay
// begins with it all the same, and nothing is approximate.
func TestAHistoryBeginsWithABacklog(t *testing.T) {
	o := shipped(t)
	o.Catalogue = catalogue.Empty()
	o.Verify = true
	begin := time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)
	end := begin.Add(5 * time.Hour)
	tl, l := memory.New(), &lived{counts: map[uint64]int{}}
	var cells []signal.Cell
	for at := begin; at.Before(end); at = at.Add(signal.BucketSize) {
		c := signal.Cell{Bucket: at, Key: signal.Key{Path: signal.Path{Service: "issues", Operation: "create", Access: signal.Write}}}
		c.Outcomes[signal.Success] = 50
		if at.Sub(begin) > 2*time.Hour && at.Sub(begin) < 3*time.Hour {
			c.Outcomes[signal.Failure] = 50
		}
		cells = append(cells, c)
	}
	tl.AddCells(cells)
	tl.SetProgress(end, end)
	p, err := tl.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := detect.New(detect.Config{Rules: o.Rules, Catalogue: o.Catalogue})
	from, to := end, end
	for n := uint64(1); from.Before(end) || n == 1; n++ {
		tick := detect.Tick{Number: n, From: from, To: to, Marks: p.Marks, Clock: p.Clock, Rules: o.Rules.Revision, Catalogue: o.Catalogue.Revision}
		in, err := tl.Claim(t.Context(), tick)
		if err != nil {
			t.Fatal(err)
		}
		out := d.Tick(in)
		if err := tl.Commit(t.Context(), tick, out); err != nil {
			t.Fatal(err)
		}
		l.ins, l.counts[n], l.log = append(l.ins, in), in.Rows(), append(l.log, conclusions(n, &out)...)
		from = d.Position()
		to = minTime(end, from.Add(10*time.Minute))
	}
	for _, from := range []time.Time{begin.Add(-time.Hour), begin.Add(time.Minute)} {
		rec, err := RunStored(t.Context(), l, from, end, o)
		if err != nil {
			t.Fatal(err)
		}
		if v := rec.Verified; rec.Approximate != "" || v.Different > 0 || v.Findings == 0 || v.Events == 0 || v.Ticks != len(l.ins) {
			t.Errorf("from %s: approximate %q, %s", from, rec.Approximate, encoded(t, v))
		}
	}
	// After an outage of the detector rows are claimed by one tick and evaluated by those after it.
	outage := &lived{ins: slices.Clone(l.ins)}
	outage.ins[1].Cells, outage.ins[0].Cells = outage.ins[0].Cells, nil
	outage.ins[0].Tick.To, outage.ins[0].Tick.Clock = begin, begin
	for name, h := range map[string]*lived{"backlog": l, "outage": outage} {
		past, err := Past(t.Context(), h, explain.Symptom{Service: "issues", Signal: "failures", At: begin.Add(150 * time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := past.Explain(o.Catalogue); err != nil || !a.Evidence.Departs {
			t.Errorf("the %s explains nothing: %s, %v", name, encoded(t, a), err)
		}
	}
}
