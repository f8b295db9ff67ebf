package detect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// A detector that is restarted from its own snapshot now and then says what one that never was says, to the byte, in worlds and under
// rules that nobody has thought of; some of them are long, so that windows of days fill and end. TOCSIN_SEEDS plays more of them, for
// longer, TOCSIN_SEED one.
func TestRestartsChangeNothing(t *testing.T) {
	first, seeds, longer := 5, 4, 1
	if n, err := strconv.Atoi(os.Getenv("TOCSIN_SEEDS")); err == nil {
		seeds, longer = n, 3
	}
	one, err := strconv.Atoi(os.Getenv("TOCSIN_SEED"))
	if err == nil {
		first, seeds, longer = one, 1, 3
	}
	said := map[string]int{}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { restarted(t, uint64(seed), longer, said) })
	}
	for _, kind := range append(rule.KindNames(), "event declared", "event resolved", "event merged", "event reopened") {
		if said[kind] == 0 && one == 0 && !t.Failed() {
			t.Errorf("nothing is ever said of %s: this proves nothing of it", kind)
		}
	}
	t.Logf("%v", said)
}

// restarted plays one world to a detector that runs through and to others that take over from each other.
func restarted(t *testing.T, seed uint64, longer int, said map[string]int) {
	w := newOddWorld(seed)
	text := w.rules()
	f, err := rule.Parse("rules.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	cat, err := catalogue.Parse("catalogue.yaml", []byte(oddCatalogue))
	if err != nil {
		t.Fatal(err)
	}
	cfg := detect.Config{Rules: &rule.Set{Groups: f.Groups, Revision: "test"}, Catalogue: cat}
	through, again := detect.New(cfg), detect.New(cfg)
	w.groups = f.Groups
	steps, seldom := 1200*longer, 4+w.r.IntN(30)
	if w.sparse {
		steps, seldom = (3*24*360+2000)*min(2, longer), 3*seldom
	}
	row := 0 // restarts after each tick
	for n := 1; w.step < steps; n++ {
		in := w.next(n)
		a, b := through.Tick(in), again.Tick(in)
		if x, y := asJSON(t, a), asJSON(t, b); !bytes.Equal(x, y) {
			t.Fatalf("tick %d, step %d: %s", n, w.step, apart(x, y))
		}
		w.hear(&a)
		for i := range a.Transitions {
			said[a.Transitions[i].Finding.Kind]++
		}
		for i := range a.Events {
			said["event "+string(a.Events[i].Type)]++
		}
		if w.chance(seldom * 12) {
			row = 10
			sameState(t, through, again)
		}
		if row--; row >= 0 || w.chance(seldom) {
			again = restart(t, again, cfg)
		}
	}
	sameState(t, through, again)
}

func sameState(t *testing.T, through, again *detect.Detector) {
	t.Helper()
	x, err := through.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	y, err := again.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Fatalf("up to %s all was said alike, but the state is another: %s", through.Position(), detect.Apart(x, y))
	}
}

func restart(t *testing.T, d *detect.Detector, cfg detect.Config) *detect.Detector {
	t.Helper()
	state, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	fresh := detect.New(cfg)
	if err := fresh.Restore(state); err != nil {
		t.Fatal(err)
	}
	return fresh
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// apart shows where two texts begin to differ.
func apart(x, y []byte) string {
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	cut := func(b []byte) []byte { return b[max(0, n-300):min(len(b), n+300)] }
	return fmt.Sprintf("at byte %d: without restarts\n…%s…\nwith\n…%s…", n, cut(x), cut(y))
}

const oddCatalogue = `areas:
  - {name: left, words: [left]}
  - {name: right, words: [right]}
services:
  - {name: s0, area: left, depends_on: [db/0, s1]}
  - {name: s1, area: left, depends_on: [db/0]}
  - {name: s2, area: right, depends_on: [db/1]}
  - {name: s3, area: right, depends_on: [db/0, s2]}
  - {name: s4}
resources:
  - {name: db/0, kind: database}
  - {name: db/1, kind: database}
`

// oddWorld is a random past, all of one seed: paths with attributes that pause for hours, trouble that comes and goes, rows that are
// late, streams that are partial, and people who say things.
type oddWorld struct {
	r       *rand.Rand
	groups  []rule.Group
	step    int
	trouble map[string]int
	pause   map[string]int
	partial map[signal.Stream]int
	ids     []string // of incidents
	n       int
	sparse  bool // and long
}

func newOddWorld(seed uint64) *oddWorld {
	return &oddWorld{sparse: seed%4 == 0, r: rand.New(rand.NewPCG(seed, 17)), trouble: map[string]int{}, pause: map[string]int{}, partial: map[signal.Stream]int{}}
}

func (w *oddWorld) chance(oneIn int) bool { return w.r.IntN(oneIn) == 0 }

func pick[T any](w *oddWorld, of ...T) T { return of[w.r.IntN(len(of))] }

// rules are several of each kind, with odd parameters, in odd groups.
func (w *oddWorld) rules() string {
	var b strings.Builder
	b.WriteString("groups:\n")
	n := 0
	rate := func() string {
		slices := pick(w, "", ", slices: [region]", ", slices: [region, host]")
		match := pick(w, "", "", ", match: {access: write}", ", match: {service: 's[0-2]'}", ", match: {attributes: {region: r0}}", ", match: {area: left}")
		if w.chance(4) {
			return fmt.Sprintf("kind: failure_rate, above: %d%%, window: %s, min_failures: %d, lost: %d%%, bad: [rejected, failure]%s%s", 2+w.r.IntN(20), pick(w, "1m", "2m", "10m"), 1+w.r.IntN(5), pick(w, 10, 30), slices, match)
		}
		return fmt.Sprintf("kind: failure_rate, above: %d%%, window: %s, min_failures: %d, times_usual: %d%s%s%s", 1+w.r.IntN(20),
			pick(w, "30s", "1m", "2m", "5m", "1h"), 1+w.r.IntN(8), pick(w, 0, 0, 2, 5), pick(w, "", ", bad: [rejected, failure]", ", bad: [throttled]"), slices, match)
	}
	burns := func() string {
		return fmt.Sprintf("kind: failure_rate, objective: %s%%, burn_rates: [%s], min_failures: %d%s", pick(w, "99", "97", "95"),
			pick(w, "9 over 1h and 5m, 6 over 6h and 30m", "3 over 1d and 2h, 1 over 3d and 6h", "2 over 2h and 10m", "1.5 over 30m and 5m"), 1+w.r.IntN(4), pick(w, "", ", slices: [region]"))
	}
	latency := func() string {
		return "kind: latency, slower_than: " + pick(w, "1s", "250ms", "4s") + pick(w,
			fmt.Sprintf(", above: %d%%, window: %s, min_requests: 5, times_usual: %d", 3+w.r.IntN(20), pick(w, "1m", "5m", "15m"), pick(w, 0, 2)),
			", objective: 95%, burn_rates: [2 over 1h and 5m, 1 over 6h and 1h]", ", false_pages: 2 per 1d, min_excess: 3, blips: "+pick(w, "1m", "2m"))
	}
	evidence := func() string {
		return fmt.Sprintf("kind: failure_rate, false_pages: %d per 1d, min_excess: %d, blips: %s%s%s", 1+w.r.IntN(9), 1+w.r.IntN(10), pick(w, "1m", "2m", "3m"),
			pick(w, "", ", slices: [region]", ", slices: [region, host]"), pick(w, "", ", bad: [rejected, failure]"))
	}
	support := func() string {
		return "kind: support" + pick(w, fmt.Sprintf(", min_accounts: %d, times_usual: %d, window: %s", 1+w.r.IntN(4), 1+w.r.IntN(4), pick(w, "5m", "15m", "1h")),
			fmt.Sprintf(", false_pages: %d per 1d, min_excess: %d, blips: 1m", 1+w.r.IntN(9), 1+w.r.IntN(3)))
	}
	saturation := func() string {
		return "kind: saturation" + pick(w, ", above: 90%", ", exhausted_in: 30m, trend_over: 10m", ", above: 85%, exhausted_in: 1h") + pick(w, "", ", match: {kind: database}")
	}
	gauge := func() string {
		return fmt.Sprintf("kind: gauge, false_alarms: %d per 1d, min_change: 5%%, toward: %s, with_limit: %t", 1+w.r.IntN(20), pick(w, "up", "down", "both"), w.chance(2))
	}
	backlog := func() string {
		return fmt.Sprintf("kind: backlog, growing_for: %s, times_usual: %s, at_least: %d", pick(w, "1m", "5m", "10m"), pick(w, "1.5", "2"), 1+w.r.IntN(20)) + pick(w, ", match: {metric: 'm*'}", ", match: {kind: database}")
	}
	retries := func() string {
		return "kind: retries, window: " + pick(w, "1m", "2m", "5m", "10m") + fmt.Sprintf(", min_requests: %d", 3+w.r.IntN(20)) +
			pick(w, ", attempts: 1.2, times_usual: 1.5", ", traffic: 2", ", attempts: 1.4, traffic: 1.5")
	}
	absence := func() string {
		return fmt.Sprintf("kind: absence, per: %s, silent_for: %s, expected: %d", pick(w, "service", "path"), pick(w, "1m", "3m"), 3+w.r.IntN(20))
	}
	external := func() string {
		return "kind: external, expires: " + pick(w, "5m", "20m") + pick(w, "", ", match: {severity: 'crit*'}") + ", severities: {critical: page, warning: warning}"
	}
	sql := func() string {
		return "kind: sql, query: 'SELECT service, value FROM t WHERE time >= {from:DateTime} AND time < {to:DateTime}'" + pick(w, "", ", above: 5", ", below: 2", ", above: 8, below: 1")
	}
	impact := func() string {
		if w.chance(3) {
			return fmt.Sprintf("kind: high_impact, false_pages: %d per 1d, min_excess: %d, min_accounts: %d%s", 1+w.r.IntN(20), 1+w.r.IntN(20), 1+w.r.IntN(5), pick(w, "", ", areas: [left]"))
		}
		return fmt.Sprintf("kind: high_impact, accounts: %d, services: %d, min_failures: %d, recovered: %s%s", 2+w.r.IntN(20), 1+w.r.IntN(3), 1+w.r.IntN(10), pick(w, "30s", "2m", "5m"), pick(w, "", ", areas: [right]"))
	}
	for g := range 5 {
		offset := ""
		kinds := []func() string{support, saturation, gauge, backlog, retries, absence, external, sql, impact, evidence, latency, rate, burns}
		if w.sparse && g > 1 && g < 4 {
			continue
		}
		if w.sparse {
			kinds = []func() string{burns, burns, rate, absence, retries, support, gauge, impact, evidence}
		}
		if g == 4 { // what looks back can do so later
			offset, kinds = pick(w, "10s", "50s", "2m", "10m"), []func() string{rate, rate, burns}
		}
		fmt.Fprintf(&b, "  - name: g%d\n", g)
		if w.chance(2) {
			fmt.Fprintf(&b, "    interval: %s\n", pick(w, "10s", "20s", "1m", "70s"))
		}
		if w.chance(3) {
			fmt.Fprintf(&b, "    limit: %d\n", 1+w.r.IntN(4))
		}
		if offset != "" {
			fmt.Fprintf(&b, "    query_offset: %s\n", offset)
		}
		b.WriteString("    rules:\n")
		for i := range pick(w, 3, 4, 5) {
			if w.sparse && i > 1 {
				break
			}
			kind := kinds[w.r.IntN(len(kinds))]
			if g < 4 && i < 4 { // each at least once
				kind = kinds[(g*4+i)%len(kinds)]
			}
			text := kind()
			if offset != "" && strings.Contains(text, "window: 1h") {
				text = strings.Replace(text, "window: 1h", "window: 5m", 1)
			}
			n++
			fmt.Fprintf(&b, "      - {alert: A%d, %s", n, text)
			if w.chance(2) {
				fmt.Fprintf(&b, ", for: %s", pick(w, "10s", "30s", "1m", "5m"))
			}
			if w.chance(2) {
				fmt.Fprintf(&b, ", keep_firing_for: %s", pick(w, "20s", "1m", "5m"))
			}
			if w.chance(2) && !strings.Contains(text, "high_impact") {
				fmt.Fprintf(&b, ", no_data: %s", pick(w, "ok", "alert", "zero", "keep"))
			}
			if w.chance(8) {
				b.WriteString(", shadow: true")
			}
			if w.chance(6) {
				fmt.Fprintf(&b, ", labels: {severity: %s}", pick(w, "page", "critical", "warning"))
			}
			b.WriteString("}\n")
		}
	}
	return b.String()
}

// next is the tick that comes next: mostly of one step, now and then of many, of none, or of hours without anything.
func (w *oddWorld) next(n int) (in detect.Inputs) {
	steps := 1
	switch {
	case n == 1, w.chance(40):
		steps = 0
	case w.chance(12):
		steps = 2 + w.r.IntN(20)
	case w.sparse:
		steps = 20 + w.r.IntN(20)
	}
	in.Tick = detect.Tick{Number: uint64(n), From: w.at(0), Clock: w.at(1)}
	for i := range steps {
		if !w.sparse || i%30 == 0 {
			w.fill(&in)
		}
		w.step++
	}
	if n > 50 && w.chance(400) { // all is silent
		w.step += w.r.IntN(800)
	}
	if steps > 0 {
		w.answer(&in)
	}
	in.Tick.To = w.at(0)
	for _, s := range []signal.Stream{signal.Requests, signal.Gauges, signal.Tickets, signal.Alerts} {
		if w.chance(150) {
			w.partial[s] = w.step + w.r.IntN(30)
		}
		if w.partial[s] > w.step {
			in.Tick.Partial = append(in.Tick.Partial, s)
		}
	}
	if len(w.ids) > 0 && w.chance(25) {
		w.n++
		in.Tick.Commands = append(in.Tick.Commands, incident.Command{
			ID: fmt.Sprint("c", w.n-w.r.IntN(2)), Incident: pick(w, w.ids...), Into: pick(w, w.ids...), By: "ines",
			Type: pick(w, incident.CommandAcknowledge, incident.CommandMitigate, incident.CommandResolve, incident.CommandDismiss, incident.CommandMerge, incident.CommandMerge, incident.CommandReopen),
		})
	}
	return in
}

func (w *oddWorld) at(step int) time.Time { return at(time.Duration(w.step+step) * signal.BucketSize) }

// when is mostly now; some rows are late, by minutes or hours, and some early.
func (w *oddWorld) when() time.Time {
	at := w.at(0)
	switch {
	case w.chance(40):
		at = at.Add(-time.Duration(w.r.IntN(12)) * signal.BucketSize)
	case w.chance(200):
		at = at.Add(-time.Duration(w.r.IntN(1500)) * signal.BucketSize)
	case w.chance(60):
		at = at.Add(time.Duration(w.r.IntN(6)) * signal.BucketSize)
	}
	return at
}

// hurt tells whether a thing is in trouble, which comes to each now and then and lasts.
func (w *oddWorld) hurt(what string, oneIn, long int) bool {
	if w.chance(oneIn) {
		w.trouble[what] = w.step + w.r.IntN(long)
	}
	return w.step < w.trouble[what]
}

func (w *oddWorld) rests(what string) bool {
	if w.chance(300) {
		w.pause[what] = w.step + pick(w, 20, 60, 200, 450)
	}
	return w.step < w.pause[what]
}

func (w *oddWorld) fill(in *detect.Inputs) {
	all := w.hurt("all", 600, 60)
	paths := 10
	if w.sparse {
		paths = 4
	}
	for p := range paths {
		name := fmt.Sprint("p", p)
		if bad := w.hurt(name, 200, 150); !w.rests(name) && (p < 6 || w.chance(4)) {
			w.cells(in, p, bad || all && p%2 == 0)
		}
	}
	if w.sparse && w.chance(3) {
		return
	}
	w.gauges(in)
	w.tickets(in, all)
	w.others(in)
}

func (w *oddWorld) cells(in *detect.Inputs, p int, bad bool) {
	for range 1 + w.r.IntN(2) {
		c := signal.Cell{Bucket: w.when(), Key: signal.Key{Path: signal.Path{Service: fmt.Sprint("s", p/2), Operation: fmt.Sprint("o", p), Access: signal.Access(p % 2)}}}
		region, host := w.r.IntN(3), w.r.IntN(2+p)
		if p%3 != 2 {
			c.Key.Attributes = signal.AttributesOf(signal.Attr{Name: "region", Value: fmt.Sprint("r", region)})
			if w.chance(2) {
				c.Key.Attributes = signal.AttributesOf(signal.Attr{Name: "region", Value: fmt.Sprint("r", region)}, signal.Attr{Name: "host", Value: fmt.Sprint("h", host, w.step/500)})
			}
		}
		c.Outcomes[signal.Success] = w.r.Uint64N(uint64(3 + 8*p))
		if bad && (p%2 == 0 || region == 0) {
			if p%4 == 3 {
				c.Outcomes[signal.Success] /= 4
			}
			c.Outcomes[pick(w, signal.Failure, signal.Failure, signal.Rejected, signal.Throttled)] += w.r.Uint64N(12)
			for range w.r.IntN(4) {
				c.Accounts.Add(signal.HashAccount(fmt.Sprint("a", w.r.IntN(200))))
			}
			c.Retries = w.r.Uint64N(1 + c.Total())
		}
		if w.chance(30) {
			c.Outcomes[signal.Failure]++
		}
		if w.chance(2000) {
			c.Outcomes[signal.Success] += 1 << 20
		}
		slow := 3
		if bad && p%3 == 0 || w.chance(40) {
			slow = pick(w, 18, 22, 30)
		}
		if !w.chance(50) { // of some no latency is known
			c.Latency[slow] = c.Total()
		}
		in.Cells = append(in.Cells, c)
	}
}

func (w *oddWorld) gauges(in *detect.Inputs) {
	for g := range 6 {
		name := fmt.Sprint("g", g)
		if w.rests(name) || g > 2 && w.step%3 != 0 {
			continue
		}
		x := signal.Gauge{Time: w.when().Add(time.Duration(w.r.IntN(10)) * time.Second), Resource: fmt.Sprint("db/", g/2), Metric: fmt.Sprint("m", g), Value: 20 + w.r.Float64() + 3*math.Sin(float64(w.step)/60)}
		if w.hurt(name, 300, 200) {
			x.Value += float64(w.trouble[name]-w.step) * pick(w, 0.3, 0.4)
		}
		if w.hurt(name+"up", 300, 200) {
			x.Value += 70 - float64(w.trouble[name+"up"]-w.step)*0.3
		}
		if g%2 == 0 {
			x.Limit = 90
		}
		if w.chance(300) {
			x.Value = pick(w, math.NaN(), math.Inf(1), 0)
		}
		in.Gauges = append(in.Gauges, x)
	}
}

func (w *oddWorld) tickets(in *detect.Inputs, all bool) {
	some := w.hurt("tickets", 300, 60) || all
	for _, a := range []string{"left", "right", ""} {
		if w.chance(60) || some && a != "right" && w.chance(5) {
			w.n++
			x := signal.Ticket{Time: w.when(), ID: fmt.Sprint("t", w.n), Area: a, Service: pick(w, "", "", "s0"), Text: pick(w, "left", "nothing")}
			if w.chance(5) {
				x.Area = fmt.Sprint("odd", w.r.IntN(3))
			}
			if !w.chance(4) {
				x.Account = fmt.Sprint("a", w.r.IntN(60))
			}
			in.Tickets = append(in.Tickets, x)
		}
	}
}

func (w *oddWorld) others(in *detect.Inputs) {
	if w.chance(60) {
		in.Changes = append(in.Changes, signal.Change{
			Time: w.when(), ID: fmt.Sprint("d", w.r.IntN(30)), Kind: pick(w, signal.Deploy, signal.Job, signal.Maintenance), Target: pick(w, "s0", "s2", "db/0", ""),
			Phase: pick(w, signal.Started, signal.Finished, signal.Aborted), Title: "some", Dose: w.r.Float64(),
		})
	}
	if w.chance(40) {
		i := w.r.IntN(12)
		x := signal.Alert{
			Time: w.when(), Fingerprint: fmt.Sprint("f", i), Status: pick(w, "firing", "firing", "resolved"),
			Labels: signal.AttributesOf(signal.Attr{Name: "alertname", Value: fmt.Sprint("Elsewhere", i/4)}, signal.Attr{Name: "service", Value: fmt.Sprint("s", i%5)},
				signal.Attr{Name: "severity", Value: pick(w, "critical", "warning", "odd")}),
		}
		if w.chance(2) {
			x.EndsAt = x.Time.Add(time.Duration(w.r.IntN(1200)) * time.Second)
		}
		in.Alerts = append(in.Alerts, x)
	}
}

// answer lets some questions of sql rules be answered.
func (w *oddWorld) answer(in *detect.Inputs) {
	for g := range w.groups {
		for i := range w.groups[g].Rules {
			q, ok := detect.QuestionAt(&w.groups[g], &w.groups[g].Rules[i], in.Tick.From)
			if !ok || !w.chance(8) || w.rests("sql") {
				continue
			}
			var rows []detect.AnswerRow
			for s := range w.r.IntN(4) {
				v := detect.Number(w.r.IntN(12))
				if w.chance(20) {
					v = detect.Number(pick(w, math.NaN(), math.Inf(1), math.Inf(-1)))
				}
				rows = append(rows, detect.AnswerRow{Labels: map[string]string{"service": fmt.Sprint("s", s), "shard": fmt.Sprint(s % 2)}, Value: v})
			}
			var err error
			if w.chance(6) {
				err = fmt.Errorf("away")
			}
			a, _ := q.Answered(rows, err)
			in.Tick.Answers = append(in.Tick.Answers, a)
		}
	}
}

// hear remembers incidents, for people to talk about.
func (w *oddWorld) hear(o *detect.Outputs) {
	for i := range o.Events {
		w.ids = append(w.ids, o.Events[i].Incident)
	}
	w.ids = w.ids[max(0, len(w.ids)-12):]
}

// Numbers that no text can carry must not come to be in the state, whatever comes in: a detector whose state cannot be saved is blocked
// for good.
func TestNoNumberKeepsTheStateFromBeingSaved(t *testing.T) {
	const text = `groups:
  - name: test
    rules:
      - {alert: Full, kind: saturation, above: 90%, exhausted_in: 1h, trend_over: 10m}
      - {alert: Odd, kind: gauge, with_limit: true}
      - {alert: Waiting, kind: backlog, match: {metric: 'm*'}, growing_for: 1m, times_usual: 2, at_least: 1}
      - {alert: HighImpact, kind: high_impact, accounts: 1000, services: 1}
`
	most, least := math.MaxFloat64, math.SmallestNonzeroFloat64
	for i, of := range [][2]float64{{most, 0}, {-most, 0}, {most, most}, {most, least}, {1, least}, {least, most}, {math.Inf(1), 1}, {math.NaN(), 1}, {1, math.Inf(1)}, {1, math.NaN()}} {
		cfg := detect.Config{Rules: parseRules(t, text)}
		d := detect.New(cfg)
		for n := range 600 {
			in := detect.Inputs{Tick: detect.Tick{Number: uint64(n + 1), From: at(time.Duration(n) * signal.BucketSize), To: at(time.Duration(n+1) * signal.BucketSize)}}
			for m, v := range []float64{of[0], of[0] * float64(n%100) / 100, 1 + of[0]*float64(n/400)} {
				in.Gauges = append(in.Gauges, signal.Gauge{Time: in.Tick.To, Resource: "db", Metric: fmt.Sprint("m", m), Value: v, Limit: of[1]}) // which is yet to be judged
			}
			asJSON(t, d.Tick(in))
			if n%50 == 0 || n > 400 && n < 420 {
				d = restart(t, d, cfg)
			}
		}
		if i < 5 && d.Position().IsZero() {
			t.Errorf("%v: nothing was judged", of)
		}
	}
}
