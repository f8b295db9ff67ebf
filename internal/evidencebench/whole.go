package evidencebench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	found "github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Trouble makes a part of one path's requests fail, from one minute of a world to another.
type Trouble struct {
	Path     int
	From, To int64
	Share    float64
}

// WholeRules are the rules of a group with a budget, written as in rule files: "1 per 30d".
func WholeRules(budget string) (*rule.Set, error) {
	return rule.FromFiles(map[string]string{"rules.yaml": fmt.Sprintf(wholeRules, budget)})
}

// The shipped rules of this kind, but that they are not in shadow.
const wholeRules = `groups:
  - name: evidence
    rules:
      - {alert: FailuresUnusual, kind: failure_rate, false_pages: %[1]s, slices: [region], keep_firing_for: 3m}
      - {alert: TicketsUnusual, kind: support, false_pages: %[1]s, keep_firing_for: 5m}
      - {alert: HighImpact, kind: high_impact, false_pages: %[1]s, recovered: 5m}
`

// Whole is what the whole detector made of quiet days: rules, correlation and declaration, not the evidence of keys alone. A budget
// counts what is left after those.
type Whole struct {
	Days      int
	Findings  int // that began to fire, by rules that are not in shadow
	Suspected int // incidents that opened
	Pages     int // incidents that would have woken somebody
	Paging    []Paged
}

// Paged is an incident that would have woken somebody.
type Paged struct {
	Minute int64 // of the world
	Title  string
}

const (
	inArea    = 5 // services
	bucketsIn = int(time.Minute / signal.BucketSize)
	tickOf    = 10 // minutes judged at once, which makes no difference to what is concluded
)

// wholeStart is a Monday, as the worlds' weeks begin with one.
var wholeStart = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// RunWhole plays days of a world to a detector with the given rules. Customers write tickets, too.
func RunWhole(kind Kind, seed uint64, days int, rules *rule.Set, troubles ...Trouble) (Whole, error) {
	cat, err := wholeCatalogue()
	if err != nil {
		return Whole{}, err
	}
	out := Whole{Days: days}
	d := detect.New(detect.Config{Rules: rules, Catalogue: cat})
	w, split, desk := newWorld(kind, seed), newRandom(seed, 3), newHelpdesk(seed)
	names := make([]string, len(w.paths))
	for i := range names {
		names[i] = fmt.Sprintf("operation-%d", i%perService)
	}
	var buf []counts
	var in detect.Inputs
	rows := make([][]signal.Cell, tickOf*bucketsIn) // by bucket; within one the order of making is that of keys
	paged := map[string]bool{}
	for t := range int64(days * day) {
		w.happen(t)
		for _, x := range troubles {
			if t == x.From {
				w.paths[x.Path].blip, w.paths[x.Path].blipTo = x.Share, x.To
			}
		}
		at := wholeStart.Add(time.Duration(t) * time.Minute)
		for i, p := range w.paths {
			buf = w.minute(p, t, buf[:0])
			if len(buf) > 1 {
				buf = buf[:len(buf)-1] // the path itself is the sum of its slices, which the detector makes
			}
			for j, c := range buf {
				k := signal.Key{Path: signal.Path{Service: serviceName(i / perService), Operation: names[i], Access: signal.Access(i % 2)}}
				if len(p.weights) > 0 {
					k.Attributes = siteOf(j)
				}
				spread(rows[int(t%tickOf)*bucketsIn:], k, at, c, split)
			}
		}
		in.Tickets = append(in.Tickets, desk.minute(t, at)...)
		if t%tickOf != tickOf-1 {
			continue
		}
		in.Cells = slices.Concat(rows...)
		for b := range rows {
			rows[b] = rows[b][:0]
		}
		in.Tick = detect.Tick{Number: uint64(t/tickOf + 1), From: at.Add((1 - tickOf) * time.Minute), To: at.Add(time.Minute), Clock: at.Add(time.Minute)}
		out.take(d.Tick(in), paged)
		in.Tickets = nil
	}
	return out, nil
}

// RunWholes plays one world a seed, as many at once as there are processors, and adds up what came of them. It tells of each, one at a
// time, in the order in which they end.
func RunWholes(kind Kind, seeds, days int, rules *rule.Set, tell func(seed int, w Whole)) (sum Whole, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for seed := range seeds {
		group.Go(func() error {
			w, err := RunWhole(kind, uint64(seed+1), days, rules) //nolint:gosec // counted from 0
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			sum.Days, sum.Pages, sum.Suspected, sum.Findings = sum.Days+w.Days, sum.Pages+w.Pages, sum.Suspected+w.Suspected, sum.Findings+w.Findings
			tell(seed+1, w)
			return nil
		})
	}
	err = group.Wait()
	return sum, err
}

func (w *Whole) take(o detect.Outputs, paged map[string]bool) {
	for _, x := range o.Transitions {
		if x.Finding.State == found.Firing && x.Finding.Labels["shadow"] != "true" {
			w.Findings++
		}
	}
	for _, e := range o.Events {
		if e.Type == found.EventSuspected {
			w.Suspected++
		}
		if e.After.Page && !paged[e.Incident] {
			paged[e.Incident] = true
			w.Pages++
			w.Paging = append(w.Paging, Paged{int64(e.At.Sub(wholeStart) / time.Minute), e.After.Title})
		}
	}
}

func serviceName(i int) string { return fmt.Sprintf("service-%02d", i) }

func siteOf(j int) signal.Attributes {
	return signal.NewAttributes(map[string]string{"region": fmt.Sprintf("site-%d", j)})
}

// spread divides a minute among its buckets. One without failures needs no more than one cell: nothing depends on where in the
// minute successes lie but the cost of this.
func spread(buckets [][]signal.Cell, k signal.Key, at time.Time, c counts, r random) {
	one := func(b int, n, f uint64) {
		x := signal.Cell{Bucket: at.Add(time.Duration(b) * signal.BucketSize), Key: k}
		x.Outcomes[signal.Success], x.Outcomes[signal.Failure] = n-f, f
		buckets[b] = append(buckets[b], x)
	}
	if c.n > 0 && c.f == 0 {
		one(0, c.n, 0)
		return
	}
	for b := range bucketsIn {
		part := counts{f: r.binomial(c.f, 1/float64(bucketsIn-b))}
		part.n = part.f + r.binomial(c.n-c.f, 1/float64(bucketsIn-b))
		c.n, c.f = c.n-part.n, c.f-part.f
		if part.n > 0 {
			one(b, part.n, part.f)
		}
	}
}

// wholeCatalogue has the services of a world, five in an area.
func wholeCatalogue() (*catalogue.Catalogue, error) {
	var b strings.Builder
	b.WriteString("areas:\n")
	for a := range services / inArea {
		fmt.Fprintf(&b, "  - {name: %s, owner: team-%d}\n", areaName(a), a)
	}
	b.WriteString("services:\n")
	for s := range services {
		fmt.Fprintf(&b, "  - {name: %s, area: %s}\n", serviceName(s), areaName(s/inArea))
	}
	return catalogue.Parse("catalogue.yaml", []byte(b.String()))
}

func areaName(a int) string { return fmt.Sprintf("area-%d", a) }
