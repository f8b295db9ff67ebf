package decode

import (
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

const tried = `name: p
topic: t
stream: requests
decoder: otlp_json
routes:
  - {match: "GET /nothing", operation: nothing}
  - {match: "POST /pay/**", operation: pay}
  - {match: "/query", access: read}
outcomes:
  - {service: nobody, status: "500", outcome: success}
  - {status: "404", outcome: failure}
`

func TestTryExplains(t *testing.T) {
	span := func(name, attrs, more string) string {
		return `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"` + name + `","kind":2,"startTimeUnixNano":"1757752979000000000","endTimeUnixNano":"1757752980000000000","attributes":[` + attrs + `]` + more + `}`
	}
	attr := func(pairs ...string) string {
		var list []string
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, `{"key":"`+pairs[i]+`","value":{"stringValue":"`+pairs[i+1]+`"}}`)
		}
		return strings.Join(list, ",")
	}
	record := func(spans ...string) []byte {
		return []byte(`{"resourceSpans":[{"resource":{"attributes":[` + attr("service.name", "checkout") + `]},"scopeSpans":[{"spans":[` + strings.Join(spans, ",") + `]}]}]}`)
	}
	tests := map[string]struct {
		span string
		want string
	}{
		"a route, and a status": {span("x", attr("http.request.method", "POST", "http.route", "/pay/{a}", "http.response.status_code", "500"), ""),
			`operation "pay": route 2 (p.yaml:7:5) matches "/pay/{a}"; access write: nothing says that it only reads (reads.methods, reads.verbs, a route); outcome failure: built in, by the status 500`},
		"a rule, and a method": {span("x", attr("http.request.method", "GET", "http.route", "/cart", "http.response.status_code", "404"), ""),
			`operation "/cart": from http.route; access read: its method is among reads.methods; outcome failure: rule 2 of outcomes (p.yaml:11:5)`},
		"a route for access": {span("/query", attr("http.request.method", "POST"), ""),
			`operation "/query": from span.name; access read: route 3 (p.yaml:8:5) matches "/query"; outcome success: built in: neither status nor error says otherwise`},
		"a verb, and an error": {span("x", attr("rpc.method", "GetCart", "error.type", "timeout"), ""),
			`operation "GetCart": from rpc.method; access read: its verb is among reads.verbs; outcome failure: built in, by the error timeout`},
		"sampled, and failed by its own word": {span("x", attr("sampling.probability", "0.25"), `,"status":{"code":2}`),
			`operation "x": from span.name; access write: nothing says that it only reads (reads.methods, reads.verbs, a route); outcome failure: built in, by the span's own status; count 4: scaled up from the probability with which it was sampled`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Try(parse(t, tried), record(tt.span), time.Time{})
			if err != nil || len(got.Events) != 1 || len(got.Letters) != 0 {
				t.Fatalf("%+v, %v", got, err)
			}
			if why := strings.Join(got.Events[0].Why, "; "); why != tt.want {
				t.Errorf("got  %s\nwant %s", why, tt.want)
			}
		})
	}
	if got, _ := Try(parse(t, tried), record(tests["a rule, and a method"].span), time.Unix(1789288985, 0)); len(got.Letters) != 1 || got.Letters[0].Reason != "too_old" {
		t.Errorf("at a time of its own: %+v", got)
	}
}

func TestTryTellsOfIDsAndOfWhatIsLeftOut(t *testing.T) {
	p := parse(t, `name: p
topic: t
stream: requests
decoder: json
routes:
  - {match: /ping, access: read}
drop:
  - {operation: /ping}
  - {operation: "/users/{number}", attributes: {client: "probe*"}}
sample:
  - {outcome: success, keep: 0.999999}
`)
	got, err := Try(p, []byte(`[{"time":1789288980000,"service":"s","operation":"/users/17","outcome":"failure"},
		{"time":1789288980000,"service":"s","operation":"/users/18","outcome":"failure","attributes":{"client":"probe-2"}},
		{"time":1789288980000,"service":"s","operation":"/ping","outcome":"success"},
		{"time":1789288980000,"service":"s","operation":"/users/19","outcome":"success"}]`), time.Time{})
	if err != nil || len(got.Events) != 2 || len(got.Dropped) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{
		`operation "/users/{number}": the event says so, which is "/users/17", with placeholders for ids (collapse_ids)`,
		`; count 1: rule 1 of sample (p.yaml:11:5) keeps 0.999999 of such`,
	} {
		if why := strings.Join(got.Events[i].Why, "; "); !strings.Contains(why, want) {
			t.Errorf("event %d: %s", i, why)
		}
	}
	if a, b := got.Dropped[0].Why[0], got.Dropped[1].Why[0]; a != "rule 2 of drop (p.yaml:9:5) leaves it out" || b != "rule 1 of drop (p.yaml:8:5) leaves it out" {
		t.Errorf("%s; %s", a, b)
	}
}

func TestTryOfWhatIsNoRequest(t *testing.T) {
	p := minimal(t, signal.Tickets, "json", "")
	got, err := Try(p, []byte(`[{"time":1789288980000,"id":"1","text":"mail jane@example.com"},7]`), time.Time{})
	if err != nil || len(got.Events) != 1 || len(got.Letters) != 1 || len(got.Events[0].Why) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if !strings.Contains(got.Events[0].Event, "[email]") || got.Time.UnixMilli() != 1789288980000 {
		t.Errorf("%+v", got)
	}
	if got, err := Try(p, nil, time.Time{}); err != nil || len(got.Letters) != 1 || got.Letters[0].Reason != "empty" {
		t.Errorf("%+v, %v", got, err)
	}
}
