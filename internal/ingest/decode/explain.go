package decode

import (
	"fmt"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Tried is what comes out of one record, and why.
type Tried struct {
	Time    time.Time // the record's timestamp
	Events  []Explained
	Dropped []Explained // requests that the pipeline leaves out
	Letters []ingest.DeadLetter
}

// maxExplained bounds the events that are explained, and with them the work: every route is tried on all of them.
const maxExplained = 100

// Explained is one event. Why has lines for people, of requests only: other events are what the record says.
type Explained struct {
	Event string // as a line of a recording
	Why   []string
}

// Try reads a record as the loop would. A zero time stands for the time of its newest event, so that old captures are
// not too old.
//
// It explains by asking what would have come out otherwise: without the routes, without a list of methods. So it
// holds for every decoder and can't fall behind what decoders do.
func Try(p *pipeline.Pipeline, value []byte, at time.Time) (Tried, error) {
	e, ok := ByName(p.Decoder)
	if !ok {
		return Tried{}, fmt.Errorf("pipeline %q: there is no decoder %q", p.Name, p.Decoder)
	}
	if at.IsZero() {
		e.New(p).Decode(ingest.Record{Time: time.Unix(0, 0), Value: value}, func(e signal.Event) {
			if e.At().After(at) {
				at = e.At()
			}
		}, func(ingest.DeadLetter) {})
	}
	if at.IsZero() {
		at = time.Unix(0, 0) // nothing came out, or nothing has a time
	}
	out := Tried{Time: at}
	source, err := Source(p)
	if err != nil {
		return Tried{}, err
	}
	var requests []*signal.Request
	rec := ingest.Record{Time: at, Value: value}
	source.Reader().Read(rec, at, func(e signal.Event) {
		out.Events = append(out.Events, Explained{Event: Native(e)})
		if r := asRequest(e); r != nil && len(requests) < maxExplained {
			own := *r // it may be reused
			requests = append(requests, &own)
		}
	}, func(d ingest.DeadLetter) { out.Letters = append(out.Letters, d) })
	x := explainer{p: p, rec: rec, got: requests}
	if out.Dropped, err = x.leftOut(); err != nil {
		return Tried{}, err
	}
	for i := range requests {
		out.Events[i].Why = x.why(i)
	}
	return out, nil
}

// leftOut reads the record as if nothing were left out, and finds the places of what is not among all. It gives what
// rules drop.
func (x *explainer) leftOut() (out []Explained, err error) {
	all := *x.p
	all.Requests.Drop, all.Requests.Sample = nil, nil
	source, err := Source(&all)
	if err != nil {
		return nil, err
	}
	rules := x.p.Requests.Drop
	source.Reader().Read(x.rec, x.rec.Time, func(e signal.Event) {
		x.total++
		r := asRequest(e)
		if r == nil || len(x.places)+len(out) >= maxExplained {
			return
		}
		if i := slices.IndexFunc(rules, func(d pipeline.DropRule) bool { return d.Match(r) }); i >= 0 {
			out = append(out, Explained{Native(e), []string{fmt.Sprintf("rule %d of drop (%s) leaves it out", i+1, rules[i].Places.Of(""))}})
			return
		}
		if n := len(x.places); n < len(x.got) && same(r, x.got[n]) {
			x.places = append(x.places, x.total-1)
		}
	}, func(ingest.DeadLetter) {})
	return out, nil
}

// same tells whether two requests differ in no more than what they count for.
func same(a, b *signal.Request) bool {
	c := *a
	c.Count, c.Estimated = b.Count, b.Estimated
	return c == *b
}

// asRequest is an event that is mapped like a request, or nil.
func asRequest(e signal.Event) *signal.Request {
	switch e := e.(type) {
	case *signal.Request:
		return e
	case *series.Point:
		return &e.Request
	}
	return nil
}

// explainer compares requests with those that other pipelines would have given, which it remembers.
type explainer struct {
	p   *pipeline.Pipeline
	rec ingest.Record
	got []*signal.Request // the first of them
	// Nothing is left out where they are compared.
	places []int // of each of got
	total  int
	seen   map[string][]*signal.Request // as many, or none where their number differs
}

// otherwise gives request i as the changed pipeline has it, nil if its requests are not the same ones.
func (x *explainer) otherwise(name string, i int, change func(*pipeline.Requests)) *signal.Request {
	list, known := x.seen[name]
	if !known {
		p := *x.p
		p.Requests.Drop, p.Requests.Sample = nil, nil
		change(&p.Requests)
		source, err := Source(&p)
		if err != nil {
			return nil
		}
		total := 0
		source.Reader().Read(x.rec, x.rec.Time, func(e signal.Event) {
			total++
			if r := asRequest(e); r != nil && len(list) < maxExplained {
				own := *r
				list = append(list, &own)
			}
		}, func(ingest.DeadLetter) {})
		if total != x.total {
			list = nil
		}
		if x.seen == nil {
			x.seen = map[string][]*signal.Request{}
		}
		x.seen[name] = list
	}
	if list == nil || i >= len(x.places) || x.places[i] >= len(list) {
		return nil
	}
	return list[x.places[i]]
}

func (x *explainer) why(i int) []string {
	r := x.got[i]
	base := x.otherwise("no routes", i, func(q *pipeline.Requests) { q.Routes, q.CollapseIDs = nil, false })
	operation := x.named(i, base)
	access := x.accessed(i)
	if base != nil && (base.Path != r.Path) {
		if k, route := x.route(i, base); route != nil {
			by := fmt.Sprintf("route %d (%s) matches %q", k+1, route.Places.Of(""), base.Path.Operation)
			if route.Operation != "" {
				operation = by
			}
			if route.Access != nil {
				access = by
			}
		}
	}
	if base != nil && base.Path.Operation != r.Path.Operation && pipeline.CollapseIDs(base.Path.Operation) == r.Path.Operation {
		operation += fmt.Sprintf(", which is %q, with placeholders for ids (collapse_ids)", base.Path.Operation)
	}
	lines := []string{
		fmt.Sprintf("operation %q: %s", r.Path.Operation, operation),
		fmt.Sprintf("access %s: %s", r.Path.Access, access),
		fmt.Sprintf("outcome %s: %s", r.Outcome, x.judged(r)),
	}
	if r.Estimated {
		lines = append(lines, fmt.Sprintf("count %d: %s", r.Count, x.scaled(r)))
	}
	return lines
}

// named says where the operation comes from before routes.
func (x *explainer) named(i int, base *signal.Request) string {
	for k, name := range x.p.Requests.Operation {
		alone := x.otherwise("operation "+name, i, func(q *pipeline.Requests) {
			q.Routes, q.CollapseIDs, q.Operation = nil, false, x.p.Requests.Operation[:k+1]
		})
		if alone != nil && base != nil && alone.Path.Operation == base.Path.Operation {
			return "from " + name
		}
	}
	if len(x.p.Requests.Operation) > 0 {
		return fmt.Sprintf("from the first of %q that it has", x.p.Requests.Operation)
	}
	return "the event says so"
}

// route finds the first route after which the path is what it is in the end.
func (x *explainer) route(i int, base *signal.Request) (int, *pipeline.Route) {
	for k := range x.p.Requests.Routes {
		with := x.otherwise(fmt.Sprintf("routes %d", k), i, func(q *pipeline.Requests) { q.Routes, q.CollapseIDs = q.Routes[:k+1], false })
		if with != nil && with.Path != base.Path {
			return k, &x.p.Requests.Routes[k]
		}
	}
	return 0, nil
}

// scaled says what made a request count for several.
func (x *explainer) scaled(r *signal.Request) string {
	for k := range x.p.Requests.Sample {
		if s := &x.p.Requests.Sample[k]; s.Match(r) {
			return fmt.Sprintf("rule %d of sample (%s) keeps %v of such", k+1, s.Places.Of(""), s.Keep)
		}
	}
	return "scaled up from the probability with which it was sampled"
}

func (x *explainer) accessed(i int) string {
	methods := x.otherwise("no methods", i, func(q *pipeline.Requests) { q.Routes, q.Reads.Methods = nil, nil })
	verbs := x.otherwise("no verbs", i, func(q *pipeline.Requests) { q.Routes, q.Reads.Verbs = nil, nil })
	switch {
	case x.got[i].Path.Access == signal.Write:
		return "nothing says that it only reads (reads.methods, reads.verbs, a route)"
	case methods != nil && methods.Path.Access == signal.Write:
		return "its method is among reads.methods"
	case verbs != nil && verbs.Path.Access == signal.Write:
		return "its verb is among reads.verbs"
	}
	return "the event says so, or its GraphQL operation is a query"
}

// judged repeats the rules on the request that they judged; all that they look at is in it.
func (x *explainer) judged(r *signal.Request) string {
	for k := range x.p.Requests.Outcomes {
		o := &x.p.Requests.Outcomes[k]
		if o.Outcome == r.Outcome && o.Service.Match(r.Path.Service) && o.Operation.Match(r.Path.Operation) && o.Status.Match(r.Status) && o.Error.Match(r.Error) {
			return fmt.Sprintf("rule %d of outcomes (%s)", k+1, o.Places.Of(""))
		}
	}
	switch d, _ := pipeline.DecoderByName(x.p.Decoder); {
	case !d.Spans && len(d.Resource) == 0:
		return "the event says so"
	case r.Status != "" && r.Error != "":
		return fmt.Sprintf("built in, by the status %s and the error %s", r.Status, r.Error)
	case r.Status != "":
		return "built in, by the status " + r.Status
	case r.Error != "":
		return "built in, by the error " + r.Error
	case r.Outcome == signal.Failure:
		return "built in, by the span's own status"
	}
	return "built in: neither status nor error says otherwise"
}
