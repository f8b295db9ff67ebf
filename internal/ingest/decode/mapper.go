package decode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What is looked for among attributes. Dimensions follow after these.
const (
	fieldService = iota
	fieldOperation
	fieldAccount
	fieldMethod
	fieldStatus
	fieldGRPC
	fieldError
	fieldResend
	fieldGraphQL
	fieldRPC
	fieldMessaging
	fieldProbability
	fieldDimensions
)

// conventions are OpenTelemetry's names for what is not configured, today's before earlier ones.
var conventions = map[int][]string{
	fieldMethod:      {"http.request.method", "http.method"},
	fieldStatus:      {"http.response.status_code", "http.status_code"},
	fieldGRPC:        {"rpc.grpc.status_code", "rpc.response.status_code", "rpc.connect_rpc.error_code"},
	fieldError:       {"error.type", "exception.type"},
	fieldResend:      {"http.request.resend_count", "http.resend_count"},
	fieldGraphQL:     {"graphql.operation.type"},
	fieldRPC:         {"rpc.method"},
	fieldMessaging:   {"messaging.system", "messaging.destination.name", "messaging.destination"},
	fieldProbability: {"sampling.probability"},
}

const spanName = "span.name"

type slot struct{ field, rank int }

// value is an attribute's value: a text, or a number.
type value struct {
	text   string
	number int64
	isInt  bool
	rank   int // the lower, the better; noRank is absent
}

const noRank = 1 << 30

func (v *value) String() string {
	if v.isInt {
		return strconv.FormatInt(v.number, 10)
	}
	return v.text
}

// int is the value as a number, 0 if it is none.
func (v *value) int() int64 {
	if v.isInt || v.rank == noRank {
		return v.number
	}
	n, _ := strconv.ParseInt(v.text, 10, 64)
	return n
}

// span is what of a span is not an attribute.
type span struct {
	traceID    string // hexadecimal
	id         []byte
	name       string
	kind       pipeline.SpanKind
	start, end uint64 // Unix nanoseconds
	failed     bool
	traceState string
}

// mapper turns spans into requests by the conventions and the pipeline's own names. Its memory is reused from span to
// span; looking at an attribute costs one look-up.
type mapper struct {
	cfg      *pipeline.Requests
	kinds    map[pipeline.SpanKind]bool
	slots    map[string][]slot
	dims     []string
	resource []value
	values   []value
	pairs    []signal.Attr
	sets     interner
	names    *namer
	keeper   keeper
	request  signal.Request
}

func newMapper(cfg *pipeline.Requests) *mapper {
	m := &mapper{cfg: cfg, kinds: map[pipeline.SpanKind]bool{}, slots: map[string][]slot{}, names: newNamer(cfg), keeper: newKeeper(cfg)}
	for _, k := range cfg.Kinds {
		m.kinds[k] = true
	}
	m.look(fieldService, cfg.Service)
	m.look(fieldOperation, cfg.Operation)
	m.look(fieldAccount, cfg.Account)
	for field, names := range conventions {
		m.look(field, names)
	}
	m.dims = slices.Sorted(maps.Keys(cfg.Attributes))
	for i, name := range m.dims {
		m.look(fieldDimensions+i, cfg.Attributes[name])
	}
	m.resource = make([]value, fieldDimensions+len(m.dims))
	m.values = make([]value, len(m.resource))
	return m
}

// look makes a field known under names, of which the first that has a value counts. Between equals the span goes before
// the resource, hence the factor.
func (m *mapper) look(field int, names []string) {
	for i, name := range names {
		m.slots[name] = append(m.slots[name], slot{field, 2 * i})
	}
}

// beginResource forgets the last resource; its attributes are given by resourceAttr.
func (m *mapper) beginResource() {
	for i := range m.resource {
		m.resource[i] = value{rank: noRank}
	}
}

func (m *mapper) resourceAttr(name string, v value) { m.put(m.resource, name, v, 1) }

// beginSpan starts from the resource's attributes; the span's own are given by spanAttr.
func (m *mapper) beginSpan() { copy(m.values, m.resource) }

func (m *mapper) spanAttr(name string, v value) { m.put(m.values, name, v, 0) }

func (m *mapper) put(into []value, name string, v value, level int) {
	if !v.isInt && v.text == "" {
		return
	}
	for _, s := range m.slots[name] {
		if v.rank = s.rank + level; v.rank < into[s.field].rank {
			into[s.field] = v
		}
	}
}

// finish gives the request of the span that was begun, valid until the next; or why it is none. Both are nil and empty
// for a span that is not of a kind that counts.
func (m *mapper) finish(s *span) (*signal.Request, ingest.DeadLetter) {
	switch {
	case s.end == 0:
		return nil, ingest.DeadLetter{Reason: ingest.ReasonMissing, Detail: fmt.Sprintf("span %q has no end time", cut(s.name, maxName))}
	case !m.kinds[s.kind]:
		return nil, ingest.DeadLetter{}
	case s.end > 1<<63-1:
		return nil, ingest.DeadLetter{Reason: ingest.ReasonInvalid, Detail: fmt.Sprintf("span %q: end time %d", cut(s.name, maxName), s.end)}
	}
	m.spanAttr(spanName, value{text: s.name})
	v := m.values
	name := v[fieldOperation].String()
	fromSpan := name == s.name
	if v[fieldService].rank == noRank {
		return nil, ingest.DeadLetter{Reason: ingest.ReasonMissing, Detail: fmt.Sprintf("span %q has no %s", cut(s.name, maxName), m.cfg.Service[0])}
	}
	if name == "" {
		return nil, ingest.DeadLetter{Reason: ingest.ReasonMissing, Detail: "a span has neither a name nor " + m.cfg.Operation[0]}
	}
	c := call{service: cut(v[fieldService].String(), maxName), name: cut(name, maxOper), method: v[fieldMethod].String(), rpc: v[fieldRPC].String(),
		graphql: v[fieldGraphQL].String(), messaging: v[fieldMessaging].rank != noRank || s.kind == pipeline.KindConsumer}
	if fromSpan {
		method, rest := splitMethod(c.name)
		if c.name = rest; c.method == "" {
			c.method = method
		}
	}
	named := m.names.of(c)
	r := &m.request
	*r = signal.Request{
		Time:    time.Unix(0, int64(s.end)).UTC(),
		Path:    signal.Path{Service: c.service, Operation: named.operation, Access: named.access},
		Count:   1,
		Latency: -1,
		Account: cut(v[fieldAccount].String(), maxName),
		Attempt: 1,
		TraceID: s.traceID,
		Error:   cut(v[fieldError].String(), maxName),
	}
	if s.start != 0 && s.start <= s.end {
		r.Latency = time.Duration(s.end - s.start)
	}
	if n := v[fieldResend].int(); n > 0 {
		r.Attempt = uint32(min(n, 1<<20)) + 1
	}
	e := ending{http: int(v[fieldStatus].int()), grpc: v[fieldGRPC].String(), errorType: r.Error, failed: s.failed}
	r.Status, r.Outcome = e.status(), e.outcome()
	r.Attributes = m.attributes()
	m.sample(r, s)
	overrule(m.cfg.Outcomes, r)
	if !m.keeper.none() && !m.keeper.keep(r, xxhash.Sum64(s.id)) {
		return nil, ingest.DeadLetter{}
	}
	return r, ingest.DeadLetter{}
}

func (m *mapper) attributes() signal.Attributes {
	m.pairs = m.pairs[:0]
	for i, name := range m.dims {
		if v := &m.values[fieldDimensions+i]; v.rank != noRank {
			m.pairs = append(m.pairs, signal.Attr{Name: name, Value: cut(v.String(), maxName)})
		}
	}
	return m.sets.of(m.pairs)
}

// sample scales up a span that was kept with a known probability.
func (m *mapper) sample(r *signal.Request, s *span) {
	p := 0.0
	if v := &m.values[fieldProbability]; v.rank != noRank {
		p, _ = strconv.ParseFloat(v.String(), 64)
	} else if s.traceState != "" {
		p = probabilityOf(s.traceState)
	}
	if p == 0 || p == 1 {
		return
	}
	if n, ok := scale(p, xxhash.Sum64(s.id)); ok {
		r.Count, r.Estimated = n, true
	}
}
