package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/scenario/wire"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// shortDemo is the demo's scenario from a quarter before the incident to a quarter after its onset.
func shortDemo(t testing.TB) *scenario.Scenario {
	t.Helper()
	fsys := fstest.MapFS{}
	err := fs.WalkDir(deploy.Demo, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(deploy.Demo, p)
		fsys[p] = &fstest.MapFile{Data: []byte(strings.NewReplacer("\nstart: \"05:30\"", "\nstart: \"08:30\"", "\nend: \"11:15\"", "\nend: \"08:55\"").Replace(string(data)))}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(fsys, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	if s.End.Sub(s.Start) != 25*time.Minute {
		t.Fatalf("from %s to %s", s.Start, s.End)
	}
	return s
}

// span is what a reader of the semantic conventions sees, read without this package's help.
type span struct {
	Service, Operation, Method, Region, Account, Error, Trace string
	Status, Resends                                           int64
	Latency                                                   time.Duration
	End                                                       time.Time
	Failed                                                    bool
}

func spans(t *testing.T, value []byte) (out []span) {
	t.Helper()
	var data tracepb.TracesData
	if err := proto.Unmarshal(value, &data); err != nil {
		t.Fatal(err)
	}
	for _, rs := range data.ResourceSpans {
		resource := map[string]string{}
		for _, kv := range rs.Resource.Attributes {
			resource[kv.Key] = kv.Value.GetStringValue()
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				if s.Kind != tracepb.Span_SPAN_KIND_SERVER || len(s.TraceId) != 16 || len(s.SpanId) != 8 {
					t.Fatalf("span %v", s)
				}
				x := span{
					Service: resource["service.name"], Region: resource["cloud.region"], Trace: hex.EncodeToString(s.TraceId), Status: -1,
					End: time.Unix(0, int64(s.EndTimeUnixNano)).UTC(), Latency: time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano),
					Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR,
				}
				for _, kv := range s.Attributes {
					switch v := kv.Value; kv.Key {
					case "http.route", "rpc.method":
						x.Operation = v.GetStringValue()
					case "http.request.method":
						x.Method = v.GetStringValue()
					case "http.response.status_code", "rpc.grpc.status_code":
						x.Status = v.GetIntValue()
					case "http.request.resend_count":
						x.Resends = v.GetIntValue()
					case "error.type":
						x.Error = v.GetStringValue()
					case "account.id":
						x.Account = v.GetStringValue()
					case "rpc.system":
					default:
						t.Fatalf("attribute %s", kv.Key)
					}
				}
				out = append(out, x)
			}
		}
	}
	return out
}

func (s *span) outcome() signal.Outcome {
	switch {
	case s.Failed:
		return signal.Failure
	case s.Status == 429 || s.Status == 8:
		return signal.Throttled
	case s.Status >= 400, s.Status > 0 && s.Status < 17:
		return signal.Rejected
	}
	return signal.Success
}

func (s *span) access() signal.Access {
	if s.Method == "GET" || s.Method == "" && (strings.HasPrefix(s.Operation, "Get") || strings.HasPrefix(s.Operation, "List")) {
		return signal.Read
	}
	return signal.Write
}

type cell struct {
	bucket time.Time
	key    signal.Key
}

func TestSpansAddUpToTheTruth(t *testing.T) {
	s := shortDemo(t)
	g, enc := scenario.NewGenerator(s, 1), wire.NewEncoder(s, wire.Options{})
	got := map[cell][4]uint64{}
	byTrace := map[string]span{}
	partitions := map[int]int{}
	var played []*scenario.Slice
	for slice, ok := g.Next(); ok; slice, ok = g.Next() {
		played = append(played, slice)
		records, err := enc.Encode(slice)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			if i > 0 && r.Time.Before(records[i-1].Time) || r.Time.Before(slice.From) || !r.Time.Before(slice.To) {
				t.Fatalf("record of %s in the slice from %s to %s", r.Time, slice.From, slice.To)
			}
			if r.Topic != "otlp_spans" {
				continue
			}
			partitions[r.Partition]++
			if r.Key != nil {
				t.Fatal("the exporter sets no key")
			}
			list := spans(t, r.Value)
			if len(list) > 300 {
				t.Errorf("%d spans in a record", len(list))
			}
			for _, x := range list {
				if x.End.After(r.Time) {
					t.Fatalf("a span that ends at %s in a record of %s", x.End, r.Time)
				}
				byTrace[x.Trace] = x
				c := cell{x.End.Truncate(10 * time.Second), signal.Key{
					Path:       signal.Path{Service: x.Service, Operation: x.Operation, Access: x.access()},
					Attributes: signal.NewAttributes(map[string]string{"region": x.Region}),
				}}
				n := got[c]
				n[x.outcome()]++
				got[c] = n
			}
		}
	}
	want := map[cell][4]uint64{}
	for total := range g.Truth().Totals() {
		want[cell{total.Bucket, total.Key}] = total.Outcomes
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d cells of spans are not the %d of the truth", len(got), len(want))
	}
	if len(partitions) != 4 {
		t.Errorf("records by partition: %v", partitions)
	}
	retries := 0
	for _, slice := range played {
		for _, r := range slice.Requests {
			x, ok := byTrace[r.TraceID]
			if !ok || x.Account != r.Account || x.Error != r.Error || x.Resends != int64(r.Attempt-1) || x.Latency != r.Latency || !x.End.Equal(r.Time) {
				t.Fatalf("request %+v became %+v", r, x)
			}
			if r.Attempt > 1 {
				retries++
			}
		}
	}
	if retries == 0 {
		t.Error("no retries in the incident")
	}
}

func firstRequests(t *testing.T, s *scenario.Scenario) []signal.Request {
	t.Helper()
	slice, ok := scenario.NewGenerator(s, 1).Next()
	if !ok || len(slice.Requests) < 300 {
		t.Fatal("no requests")
	}
	return slice.Requests[:300]
}

// TestBytesAreThoseOfTheSDK holds the encoder's own bytes to those of OpenTelemetry's types.
func TestBytesAreThoseOfTheSDK(t *testing.T) {
	s := shortDemo(t)
	enc, other := wire.NewEncoder(s, wire.Options{}), wire.NewEncoder(s, wire.Options{})
	n := 0
	for slice := range s.Generate(2) {
		if slice.From.Before(s.Start.Add(12 * time.Minute)) {
			continue
		}
		if slice.From.After(s.Start.Add(18 * time.Minute)) {
			break
		}
		for batch := range slices.Chunk(slice.Requests, 170) {
			got, err := enc.ToOTLP(batch)
			if err != nil {
				t.Fatal(err)
			}
			message, err := other.Traces(batch)
			if err != nil {
				t.Fatal(err)
			}
			want, err := proto.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("batch %d: %d bytes differ from the %d of the SDK", n, len(got), len(want))
			}
			n++
		}
	}
	if n < 100 {
		t.Errorf("%d batches", n)
	}
}

// TestJSONIsTheSameSpans decodes the exporter's JSON by hand and compares it with the protobuf.
func TestJSONIsTheSameSpans(t *testing.T) {
	s := shortDemo(t)
	requests := firstRequests(t, s)
	enc := wire.NewEncoder(s, wire.Options{})
	binary, err := enc.ToOTLP(requests)
	if err != nil {
		t.Fatal(err)
	}
	text, err := enc.ToOTLPJSON(requests)
	if err != nil {
		t.Fatal(err)
	}
	type value struct {
		StringValue *string
		IntValue    *string
	}
	type kv struct {
		Key   string
		Value value
	}
	var doc struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []kv }
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, Name, StartTimeUnixNano, EndTimeUnixNano string
					Kind                                                      int
					Attributes                                                []kv
					Status                                                    struct{ Code int }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var want tracepb.TracesData
	if err := proto.Unmarshal(binary, &want); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, rs := range want.ResourceSpans {
		if got := *doc.ResourceSpans[i].Resource.Attributes[0].Value.StringValue; got != rs.Resource.Attributes[0].Value.GetStringValue() {
			t.Errorf("resource %q", got)
		}
		for k, p := range rs.ScopeSpans[0].Spans {
			j := doc.ResourceSpans[i].ScopeSpans[0].Spans[k]
			if j.TraceID != hex.EncodeToString(p.TraceId) || j.SpanID != hex.EncodeToString(p.SpanId) || j.Kind != 2 || j.Name != p.Name ||
				j.StartTimeUnixNano != strconv.FormatUint(p.StartTimeUnixNano, 10) || j.EndTimeUnixNano != strconv.FormatUint(p.EndTimeUnixNano, 10) || j.Status.Code != int(p.Status.Code) {
				t.Fatalf("span %+v is %+v", p, j)
			}
			for m, a := range p.Attributes {
				b := j.Attributes[m]
				same := a.Key == b.Key && (b.Value.StringValue != nil && *b.Value.StringValue == a.Value.GetStringValue() ||
					b.Value.IntValue != nil && *b.Value.IntValue == strconv.FormatInt(a.Value.GetIntValue(), 10))
				if !same {
					t.Fatalf("attribute %v is %+v", a, b)
				}
			}
			n++
		}
	}
	if n != len(requests) {
		t.Errorf("%d spans of %d requests", n, len(requests))
	}
}

// TestShapeOfTheCapture compares the names at every level with what a real exporter wrote.
func TestShapeOfTheCapture(t *testing.T) {
	capture := sharedFile(t, "wire/otlp/kafkaexporter-capture/otlp_spans.otlp_json.value")
	s := shortDemo(t)
	ours, err := wire.NewEncoder(s, wire.Options{}).ToOTLPJSON(firstRequests(t, s)[:20])
	if err != nil {
		t.Fatal(err)
	}
	theirs, got := map[string]string{}, map[string]string{}
	shape(t, capture, theirs)
	shape(t, ours, got)
	for path, kind := range got {
		if want, ok := theirs[path]; ok && want != kind {
			t.Errorf("%s is a %s there and a %s here", path, want, kind)
		} else if !ok && !strings.HasSuffix(path, ".value.intValue") && !strings.HasSuffix(path, ".status.code") {
			t.Errorf("%s is not in the capture", path)
		}
	}
	for path := range theirs {
		// Ours have no parent and no attributes on the scope.
		if _, ok := got[path]; !ok && !strings.Contains(path, "parentSpanId") && !strings.Contains(path, ".scope.attributes") {
			t.Errorf("%s of the capture is missing", path)
		}
	}
}

func shape(t *testing.T, data []byte, into map[string]string) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			into[path] = "object"
			for k, x := range v {
				walk(path+"."+k, x)
			}
		case []any:
			into[path] = "list"
			for _, x := range v {
				walk(path+"[]", x)
			}
		case string:
			into[path] = "text"
		case float64:
			into[path] = "number"
		}
	}
	walk("", doc)
}

func TestNativeTopics(t *testing.T) {
	s := shortDemo(t)
	enc := wire.NewEncoder(s, wire.Options{Encoding: wire.Native})
	counts := map[string]int{}
	var want, got []signal.Event
	for slice := range s.Generate(1) {
		if slice.From.Sub(s.Start) >= 2*time.Minute {
			break
		}
		records, err := enc.Encode(slice)
		if err != nil {
			t.Fatal(err)
		}
		for i := range slice.Requests {
			want = append(want, &slice.Requests[i])
		}
		for _, r := range records {
			counts[r.Topic]++
			if r.Topic == "tocsin.requests" {
				if err := signaljson.Decode(r.Value, signal.Requests, func(e signal.Event) { got = append(got, e) }); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if counts["tocsin.gauges"] == 0 || counts["tocsin.tickets"] == 0 || counts["tocsin.changes"] == 0 || counts["otlp_spans"] > 0 {
		t.Errorf("records by topic: %v", counts)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests change on their way through JSON (-want +got):\n%.2000s", diff)
	}
}

func TestRefusesWhatIsNoSpan(t *testing.T) {
	s := shortDemo(t)
	enc := wire.NewEncoder(s, wire.Options{})
	for name, edit := range map[string]func(*signal.Request){
		"trace id": func(r *signal.Request) { r.TraceID = strings.Repeat("x", 32) },
		"status": func(r *signal.Request) {
			r.Status, r.Path = "broken", signal.Path{Service: "docs", Operation: "/:lang/*article", Access: signal.Read}
		},
	} {
		r := firstRequests(t, s)[0]
		edit(&r)
		if _, err := enc.ToOTLP([]signal.Request{r}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := wire.NewEncoder(s, wire.Options{Encoding: "avro"}).Encode(&scenario.Slice{Requests: firstRequests(t, s)}); err == nil {
		t.Error("an unknown encoding is accepted")
	}
}

// sharedFile reads test data that lies beside the checkout, if it is there.
func sharedFile(t *testing.T, name string) []byte {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("no go.mod above the test")
		}
		root = filepath.Dir(root)
	}
	data, err := os.ReadFile(filepath.Join(root, "..", "shared", "data", name))
	if os.IsNotExist(err) {
		t.Skipf("../shared/data/%s is not there", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func BenchmarkEncode(b *testing.B) {
	s := shortDemo(b)
	enc := wire.NewEncoder(s, wire.Options{})
	slice, _ := scenario.NewGenerator(s, 1).Next()
	for b.Loop() {
		if _, err := enc.Encode(slice); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(slice.Requests)), "ns/request")
}
