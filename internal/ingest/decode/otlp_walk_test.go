package decode

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What the walker checks of each message is what the definitions say.
func TestWireTablesFollowTheDefinitions(t *testing.T) {
	seen := map[*wireMessage]bool{}
	var check func(m *wireMessage, d protoreflect.MessageDescriptor)
	check = func(m *wireMessage, d protoreflect.MessageDescriptor) {
		if seen[m] {
			return
		}
		seen[m] = true
		for n := range uint64(64) {
			f := d.Fields().ByNumber(protoreflect.FieldNumber(n))
			if want := f != nil && f.Kind() == protoreflect.StringKind; m.text(n) != want {
				t.Errorf("%s, field %d: text %v, want %v", d.FullName(), n, m.text(n), want)
			}
			part, want := m.part(n), f != nil && f.Kind() == protoreflect.MessageKind
			if (part != nil) != want {
				t.Errorf("%s, field %d: message %v, want %v", d.FullName(), n, part != nil, want)
			} else if want {
				check(part, f.Message())
			}
		}
	}
	check(wireResource, (*resourcepb.Resource)(nil).ProtoReflect().Descriptor())
	check(wireScope, (*commonpb.InstrumentationScope)(nil).ProtoReflect().Descriptor())
	check(wireEvent, (*tracepb.Span_Event)(nil).ProtoReflect().Descriptor())
	check(wireLink, (*tracepb.Span_Link)(nil).ProtoReflect().Descriptor())
	check(wireStatus, (*tracepb.Status)(nil).ProtoReflect().Descriptor())
	for _, m := range []*wireMessage{wireAnyValue, wireKeyValue, wireArrayValue, wireKVList, wireEntityRef} {
		if !seen[m] {
			t.Error("a table that no message leads to")
		}
	}
	// The messages that walk reads itself: a new text or message in them would go unchecked.
	for _, c := range []struct {
		message proto.Message
		known   string
	}{
		{&tracepb.TracesData{}, "1"},
		{&tracepb.ResourceSpans{}, "1 2 3"},
		{&tracepb.ScopeSpans{}, "1 2 3"},
		{&tracepb.Span{}, "3 5 9 11 13 15"},
	} {
		d, got := c.message.ProtoReflect().Descriptor(), []string{}
		for n := protoreflect.FieldNumber(1); n < 64; n++ {
			if f := d.Fields().ByNumber(n); f != nil && (f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.MessageKind) {
				got = append(got, fmt.Sprint(n))
			}
		}
		if strings.Join(got, " ") != c.known {
			t.Errorf("%s has texts and messages %v, walk knows %s", d.FullName(), got, c.known)
		}
	}
}

// The options of pipelines that change what becomes of spans.
var walkOptions = []string{
	"",
	"service: [service.name, host.name]\noperation: [span.name, http.route]\naccount: [http.route, a]",
	"operation: [x, http.route]",
	"operation: [x, http.route]\nattributes: {name: [span.name], version: [service.version, account.id], x: [x]}\nkinds: [server, client, internal]",
	"attributes: {region: [cloud.region, x]}\noutcomes: [{status: \"5*\", outcome: rejected}, {error: x, outcome: failure}]\nroutes: [{match: \"GET /a*\", operation: a, access: write}]",
}

// recorded gives what came out, a line each, with the dead letters of part between the events.
type recorded []string

func (r *recorded) emit(e signal.Event) { *r = append(*r, Native(e)) }
func (r *recorded) reject(d ingest.DeadLetter) {
	*r = append(*r, "dead letter "+d.Reason+": "+d.Detail+hex.EncodeToString(d.Payload))
}

// shapeless is what a shape keeps of an event.
func shapeless(e signal.Event) signal.Event {
	r, ok := e.(*signal.Request)
	if !ok || r.Outcome == signal.Failure {
		return e
	}
	c := *r
	c.Account, c.TraceID, c.Error, c.Status = "", "", "", ""
	return &c
}

// compare holds the walker to the library: the same events and the same rejections, also where requests go by shape.
// The decoders are used again and again, so that what they remember is wrong for somebody sooner or later.
func compare(t testing.TB, d *otlpProto, ref *otlpObjects, value []byte) (walked bool) {
	t.Helper()
	rec := ingest.Record{Time: time.UnixMilli(1789288985000), Value: value}
	var want, got, wantShaped, gotShaped recorded
	ref.Decode(rec, func(e signal.Event) { want.emit(e); wantShaped.emit(shapeless(e)) },
		func(l ingest.DeadLetter) { want.reject(l); wantShaped.reject(l) })
	d.Decode(rec, got.emit, got.reject)
	d.DecodeShaped(rec, func(list []ingest.Counted) {
		for _, c := range list {
			r := c.Shape.At(c.End, c.Latency)
			if r.Outcome == signal.Failure || c.End < 0 {
				t.Errorf("a shape for %+v", r)
			}
			gotShaped.emit(r)
		}
	}, func(e signal.Event) { gotShaped.emit(shapeless(e)) }, gotShaped.reject)
	for _, c := range []struct {
		name      string
		got, want recorded
	}{{"decoded", got, want}, {"shaped", gotShaped, wantShaped}} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Fatalf("%s:\n%s\nof %x", c.name, strings.Join(difference(c.want, c.got), "\n"), value)
		}
	}
	return d.w.walk(value)
}

func walkers(t testing.TB) (ds []*otlpProto, refs []*otlpObjects) {
	for _, o := range walkOptions {
		p := minimal(t, signal.Requests, "otlp_proto", o)
		ds, refs = append(ds, newOTLPProto(p, newLearned())), append(refs, &otlpObjects{m: newMapper(&p.Requests)})
	}
	return ds, refs
}

// spanSource makes spans that touch all that the mapper looks at.
type spanSource struct{ *rand.Rand }

func (r spanSource) of(list ...string) string { return list[r.IntN(len(list))] }

func (r spanSource) any(depth int) *commonpb.AnyValue {
	switch r.IntN(12) {
	case 0:
		return nil
	case 1:
		return &commonpb.AnyValue{}
	case 2, 3:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: []int64{0, 1, -1, 200, 204, 302, 404, 409, 429, 503, 500, 600, 199, 7, 1 << 40, 1<<32 + 200}[r.IntN(16)]}}
	case 4:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: r.IntN(2) == 0}}
	case 5:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: []float64{0, 0.5, 0.25, 200}[r.IntN(4)]}}
	case 6:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{1, 0xff}}}
	case 7:
		if depth < 3 {
			return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{r.any(depth + 1), r.any(depth + 1)}}}}
		}
	case 8:
		if depth < 3 {
			return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: r.attributes(2, depth+1)}}}
		}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: r.of("", "a", "GET", "POST", "/a", "/b/{id}", "GET /a", "eu", "us", "200", "503", "0.3", "x", "näh", "OK", strings.Repeat("lang", 100), strings.Repeat("x", 2000))}}
}

func (r spanSource) attributes(n, depth int) (out []*commonpb.KeyValue) {
	for range r.IntN(n + 1) {
		k := r.of("service.name", "service.name", "http.route", "http.request.method", "http.response.status_code", "error.type", "account.id", "cloud.region", "service.version",
			"span.name", "rpc.method", "rpc.grpc.status_code", "http.request.resend_count", "sampling.probability", "messaging.system", "x", "a", "host.name", "url.path", "ü", "k8s.pod.name")
		if r.IntN(200) == 0 {
			k = ""
		}
		out = append(out, &commonpb.KeyValue{Key: k, Value: r.any(depth)})
	}
	return out
}

func (r spanSource) id(n int) []byte {
	if r.IntN(100) == 0 {
		n = r.IntN(20)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func (r spanSource) span() *tracepb.Span {
	end := uint64(1789288980e9) + r.Uint64N(20e9)
	s := &tracepb.Span{TraceId: r.id(16), SpanId: r.id(8), Name: r.of("GET /a", "POST /b/{id}", "/a", "work", ""), Kind: tracepb.Span_SpanKind(r.IntN(7)),
		StartTimeUnixNano: end - r.Uint64N(1e9), EndTimeUnixNano: end, Attributes: r.attributes(10, 0)}
	if r.IntN(2) == 0 {
		s.Kind = tracepb.Span_SPAN_KIND_SERVER
	}
	switch r.IntN(30) {
	case 0:
		s.EndTimeUnixNano = 0
	case 1:
		s.EndTimeUnixNano = 1<<63 + r.Uint64N(2)
	case 2:
		s.StartTimeUnixNano = end + 1
	case 3:
		s.StartTimeUnixNano = 0
	case 4:
		s.TraceState = r.of("ot=th:c", "vendor=1", "ot=th:0", "ot=rv:1")
	case 5:
		s.Events = []*tracepb.Span_Event{{TimeUnixNano: end, Name: "exception", Attributes: r.attributes(3, 0)}}
	case 6:
		s.Links = []*tracepb.Span_Link{{TraceId: r.id(16), TraceState: "a=b", Attributes: r.attributes(3, 0)}}
	case 7:
		s.Kind = -3
	}
	if r.IntN(3) == 0 {
		s.Status = &tracepb.Status{Code: tracepb.Status_StatusCode(r.IntN(4)), Message: r.of("", "broke")}
	}
	return s
}

func (r spanSource) batch() *tracepb.TracesData {
	b := &tracepb.TracesData{}
	for range r.IntN(3) {
		rs := &tracepb.ResourceSpans{SchemaUrl: r.of("", "https://opentelemetry.io/schemas/1.38.0")}
		if r.IntN(10) > 0 {
			rs.Resource = &resourcepb.Resource{Attributes: append(r.attributes(5, 0), &commonpb.KeyValue{Key: "service.name", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: r.of("checkout", "search")}}})}
		}
		for range r.IntN(3) {
			ss := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "scope", Version: "1", Attributes: r.attributes(2, 0)}}
			for range r.IntN(5) {
				ss.Spans = append(ss.Spans, r.span())
			}
			rs.ScopeSpans = append(rs.ScopeSpans, ss)
		}
		b.ResourceSpans = append(b.ResourceSpans, rs)
	}
	return b
}

// mutate changes a record as broken senders, disks and attackers do.
func (r spanSource) mutate(b []byte) []byte {
	out := append([]byte(nil), b...)
	for range 1 + r.IntN(3) {
		if len(out) == 0 {
			return out
		}
		at := r.IntN(len(out))
		switch r.IntN(6) {
		case 0:
			out[at] = byte(r.Uint32())
		case 1:
			out[at] ^= 1 << r.IntN(8)
		case 2:
			out = out[:at]
		case 3:
			out = append(out[:at], out[min(len(out), at+1+r.IntN(4)):]...)
		case 4:
			out = append(out[:at], append([]byte{byte(r.Uint32()), byte(r.IntN(12))}, out[at:]...)...)
		case 5: // a whole piece once more
			n := min(len(out)-at, r.IntN(40))
			out = append(out, out[at:at+n]...)
		}
	}
	return out
}

// Spans of all kinds, whole and broken, give what the library's objects give.
func TestWalkerAgreesWithTheLibrary(t *testing.T) {
	r := spanSource{rand.New(rand.NewPCG(1, 2))}
	ds, refs := walkers(t)
	walked, of := 0, 0
	for range 3000 {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.batch())
		if err != nil {
			t.Fatal(err)
		}
		i := r.IntN(len(ds))
		if of++; compare(t, ds[i], refs[i], value) {
			walked++
		}
		for range 3 {
			compare(t, ds[i], refs[i], r.mutate(value))
		}
	}
	// Empty attribute names and negative codes are left to the library.
	if walked < of*8/10 {
		t.Errorf("only %d of %d whole records were walked", walked, of)
	}
}

// Captured bodies, of spans and of other signals, and what becomes of them when a byte or the tail is lost.
func TestWalkerAgreesOnCaptures(t *testing.T) {
	data := wireData(t)
	files, err := filepath.Glob(filepath.Join(data, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	r := spanSource{rand.New(rand.NewPCG(3, 4))}
	ds, refs := walkers(t)
	n := 0
	for _, f := range files {
		value, err := os.ReadFile(f)
		if err != nil || len(value) > 1<<16 || strings.HasSuffix(f, ".json") {
			continue
		}
		n++
		for i := range ds {
			walked := compare(t, ds[i], refs[i], value)
			if strings.Contains(filepath.Base(f), "trace") && strings.HasSuffix(f, ".binpb") && !walked {
				t.Errorf("%s is left to the library", f)
			}
			for range 50 {
				compare(t, ds[i], refs[i], r.mutate(value))
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d captures", n)
	}
}

// What nobody's exporter writes, but protobuf allows: it has to mean the same.
func TestWalkerOnUnusualEncodings(t *testing.T) {
	field := func(n int, payload ...byte) []byte {
		return append([]byte{byte(n<<3 | 2), byte(len(payload))}, payload...)
	}
	join := func(parts ...[]byte) (out []byte) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	text := func(s string) []byte { return field(1, []byte(s)...) }
	kv := func(k, v string) []byte { return join(text(k), field(2, text(v)...)) }
	resource := field(1, field(1, kv("service.name", "s")...)...)
	times := []byte{0x39, 1, 0, 0, 0, 0, 0, 0, 0, 0x41, 0, 0, 0, 0, 0, 0, 0, 1}
	span := func(parts ...[]byte) []byte {
		return field(2, join(append([][]byte{field(5, []byte("op")...), {0x30, 2}, times}, parts...)...)...)
	}
	spans := func(sp ...[]byte) []byte { return field(2, join(sp...)...) }
	ds, refs := walkers(t)
	for name, value := range map[string][]byte{
		"resource after spans":      field(1, join(spans(span()), resource)...),
		"two resources":             field(1, join(resource, field(1, field(1, kv("cloud.region", "eu")...)...), spans(span()))...),
		"no resource":               field(1, spans(span(field(9, kv("service.name", "s")...)))...),
		"name twice":                field(1, join(resource, spans(span(field(5, []byte("other")...))))...),
		"status twice":              field(1, join(resource, spans(span(field(15, 0x18, 2), field(15, field(2, 'm')...))))...),
		"status reset":              field(1, join(resource, spans(span(field(15, 0x18, 2), field(15, 0x18, 0))))...),
		"attribute value first":     field(1, join(resource, spans(span(field(9, join(field(2, text("/r")...), text("http.route"))...))))...),
		"attribute value twice":     field(1, join(resource, spans(span(field(9, join(kv("http.route", "/r"), field(2, text("/s")...))...))))...),
		"attribute without a value": field(1, join(resource, spans(span(field(9, text("http.route")...))))...),
		"value set twice":           field(1, join(resource, spans(span(field(9, join(text("http.route"), field(2, join(text("/r"), text("/s"))...))...))))...),
		"long varints":              field(1, join(resource, spans(span([]byte{0xb0, 0x80, 0, 0x82, 0x80, 0x80, 0})))...),
		"group":                     field(1, join(resource, spans(span([]byte{0x0b<<3 | 3, 0x0b<<3 | 4})))...),
		"field 0":                   field(1, join(resource, spans(span([]byte{0, 0})))...),
		"wrong wire type":           field(1, join(resource, spans(span([]byte{0x28, 1, 0x4d, 1, 2, 3, 4})))...),
		"unknown fields":            join(field(9, 1), field(1, join(resource, field(15, 1), spans(span([]byte{0x98, 6, 1})))...), []byte{0x50, 1}),
		"only unknown fields":       field(9, 1),
		"bad UTF-8 in an event":     field(1, join(resource, spans(span(field(11, field(2, 0xff)...))))...),
		"bad UTF-8 in a list":       field(1, join(resource, spans(span(field(9, join(text("l"), field(2, field(5, field(1, field(1, 0xff)...)...)...))...))))...),
		"bad UTF-8 in a bytes":      field(1, join(resource, spans(span(field(9, join(text("l"), field(2, field(7, 0xff)...))...))))...),
		"bad UTF-8 in a schema":     field(1, join(resource, field(3, 0xff))...),
		"empty":                     {},
		"empty spans":               field(1),
	} {
		t.Run(name, func(t *testing.T) {
			for i := range ds {
				compare(t, ds[i], refs[i], value)
				compare(t, ds[i], refs[i], value)
			}
		})
	}
}

// The name of a span matters where it is the operation, and where the operation is what it says, too.
func TestWalkerOnNamesAndOperations(t *testing.T) {
	number := func(k string, n int64) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}}
	}
	type list = []*commonpb.KeyValue
	ds, refs := walkers(t)
	for _, name := range []string{"c", "GET /a", "GET /b", "7", "c", "POST /a"} {
		for _, onResource := range []list{nil, {str("http.route", "GET /a")}, {str("x", "GET /a")}, {number("x", 7)}} {
			for _, onSpan := range []list{nil, {str("http.route", "GET /b")}, {str("x", "GET /b")}, {number("x", 7)}, {str("http.route", "GET /a"), number("x", 7)}, {str("span.name", "GET /a")}} {
				value, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
					Resource:   &resourcepb.Resource{Attributes: append(list{str("service.name", "s")}, onResource...)},
					ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: name, Kind: tracepb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: 1, EndTimeUnixNano: 2, Attributes: onSpan}}}}}}})
				if err != nil {
					t.Fatal(err)
				}
				for i := range ds {
					compare(t, ds[i], refs[i], value)
				}
			}
		}
	}
}

// More shapes, names and resources than are remembered.
func TestWalkerForgets(t *testing.T) {
	p := minimal(t, signal.Requests, "otlp_proto", "")
	d, ref := newOTLPProto(p, newLearned()), &otlpObjects{m: newMapper(&p.Requests)}
	for i := range maxShapes + maxShapes/4 {
		name := fmt.Sprint("op", i%(maxShapes+100))
		b := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
			Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{str("service.name", "s"), str(fmt.Sprint("pod-", i), "x"), str("cloud.region", fmt.Sprint(i%(maxWalkResources+10)))}},
			ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: name, Kind: tracepb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: 1, EndTimeUnixNano: 2,
				Attributes: []*commonpb.KeyValue{str(fmt.Sprint("a-", i), "y")}}}}},
		}}}
		value, err := proto.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if i%97 == 0 {
			compare(t, d, ref, value)
			continue
		}
		d.DecodeShaped(ingest.Record{Value: value}, func(list []ingest.Counted) {
			if r := list[0].Shape.At(1, 0); len(list) != 1 || r.Path.Operation != name {
				t.Fatalf("%+v for %s", r, name)
			}
		}, func(e signal.Event) { t.Fatalf("%+v", e) }, func(l ingest.DeadLetter) { t.Fatalf("%+v", l) })
	}
	w, l := d.w, d.w.known
	s := l.shapes.Load()
	if len(w.keys) > maxWalkKeys+len(d.m.slots) || len(w.resources) > maxWalkResources || len(l.same) > maxWalkResources || len(l.keys) > maxShapes || s.young.n > maxShapes || s.old.n > maxShapes {
		t.Errorf("%d names, %d and %d resources, %d keys, %d and %d shapes", len(w.keys), len(w.resources), len(l.same), len(l.keys), s.young.n, s.old.n)
	}
}

func str(k, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
}

// Whatever a record holds, the walker and the library agree.
func FuzzWalker(f *testing.F) {
	r := spanSource{rand.New(rand.NewPCG(5, 6))}
	for range 50 {
		value, err := proto.Marshal(r.batch())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
	}
	e, _ := ByName("otlp_proto")
	f.Add(fromBase64(f, e.Example))
	ds, refs := walkers(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		for i := range ds {
			compare(t, ds[i], refs[i], value)
		}
	})
}
