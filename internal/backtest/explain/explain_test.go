package explain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/backtest/explain"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var noon = time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)

func shop(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.Parse("catalogue.yaml", []byte(`services:
  - {name: front, area: shop, depends_on: [cart, search]}
  - {name: cart, area: shop, depends_on: [store]}
  - {name: search, area: shop, depends_on: [store]}
  - {name: store, area: shop}
  - {name: billing, area: shop}
resources:
  - {name: pod/search, used_by: [search]}
`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// feed gives an hour of minutes in which a share of the service's requests fails, and another since ten to noon.
func feed(p *explain.Past, service string, before, since float64, attributes ...string) {
	var a signal.Attributes
	if len(attributes) == 2 {
		a = signal.NewAttributes(map[string]string{attributes[0]: attributes[1]})
	}
	for m := range 60 {
		share := before
		if m >= 50 {
			share = since
		}
		r := signal.Request{Time: noon.Add(time.Duration(m-59) * time.Minute), Path: signal.Path{Service: service, Operation: "all", Access: signal.Read}, Attributes: a, Latency: 20 * time.Millisecond}
		for _, x := range []struct {
			outcome signal.Outcome
			share   float64
		}{{signal.Failure, share}, {signal.Success, 1 - share}} {
			if r.Outcome, r.Count = x.outcome, uint64(x.share*1000+0.5); r.Count > 0 {
				p.Add(&r)
			}
		}
	}
}

func answer(t *testing.T, p *explain.Past, c *catalogue.Catalogue) *explain.Answer {
	t.Helper()
	a, err := p.Explain(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The cause is the service below that fails as well, not the one that shows it, nor one that fails elsewhere.
func TestTheDeepestServiceInTroubleIsTheCause(t *testing.T) {
	p := explain.NewPast(explain.Symptom{Service: "front", At: noon})
	feed(p, "front", 0.001, 0.1)
	feed(p, "search", 0.001, 0.2)
	feed(p, "store", 0.001, 0.3)
	feed(p, "cart", 0.001, 0.05)
	feed(p, "billing", 0.001, 0.5)
	a := answer(t, p, shop(t))
	if s := a.Suspects[0]; s.Kind != incident.SuspectService || s.ID != "store" {
		t.Errorf("suspects %+v", a.Suspects)
	}
	for _, s := range a.Suspects {
		if s.ID == "billing" {
			t.Error("what front does not depend on is suspected")
		}
	}
	e := a.Evidence
	if !e.Departs || e.Onset == nil || !e.Onset.Equal(noon.Add(-10*time.Minute)) || e.Signal != explain.Failures || e.Excess < 900 {
		t.Errorf("evidence %+v", e)
	}
	if !strings.Contains(e.Sentence, "10% of 10000 requests failed since 11:50 UTC, 0.10% before") {
		t.Error(e.Sentence)
	}
}

// A dependency in trouble that nothing on the way shows is not it.
func TestTroubleMustReachTheSymptom(t *testing.T) {
	p := explain.NewPast(explain.Symptom{Service: "front", At: noon})
	feed(p, "front", 0.001, 0.1)
	feed(p, "search", 0.001, 0.2)
	feed(p, "cart", 0.001, 0.001)
	c, err := catalogue.Parse("catalogue.yaml", []byte("services: [{name: front, area: a, depends_on: [cart, search]}, {name: cart, area: a, depends_on: [ledger]}, {name: search, area: a}, {name: ledger, area: a}]"))
	if err != nil {
		t.Fatal(err)
	}
	feed(p, "ledger", 0.001, 0.6)
	if a := answer(t, p, c); a.Suspects[0].ID != "search" {
		t.Errorf("suspects %+v", a.Suspects)
	}
}

func TestWhereItIsComesFirstAmongSuspectsWithoutOthers(t *testing.T) {
	p := explain.NewPast(explain.Symptom{Service: "front", At: noon})
	for _, site := range []string{"iad", "fra", "sin"} {
		since := 0.001
		if site == "iad" {
			since = 0.4
		}
		feed(p, "front", 0.001, since, "site", site)
	}
	a := answer(t, p, catalogue.Empty())
	if a.Scope[0].Attributes.String() != "site=iad" || a.Suspects[0].ID != "site=iad" {
		t.Errorf("scope %v, suspects %+v", a.Scope, a.Suspects)
	}
}

// The gauges of what one service alone uses speak for that service.
func TestAnOddPodSpeaksForItsService(t *testing.T) {
	p := explain.NewPast(explain.Symptom{Service: "front", At: noon})
	feed(p, "front", 0.001, 0.1)
	for m := range 60 {
		v := 20 + float64(m%3)
		if m >= 49 {
			v = 90
		}
		p.Add(&signal.Gauge{Time: noon.Add(time.Duration(m-59) * time.Minute), Resource: "pod/search", Metric: "cpu", Value: v})
	}
	a := answer(t, p, shop(t))
	if s := a.Suspects[0]; s.ID != "search" || !strings.Contains(strings.Join(s.Reasons, "\n"), "cpu of pod/search is at 90 since 11:50 UTC, usually 21") {
		t.Errorf("suspects %+v", a.Suspects)
	}
}

// What is later than the symptom is not looked at, and where nothing departs nobody is blamed.
func TestNothingDeparts(t *testing.T) {
	p := explain.NewPast(explain.Symptom{Service: "front", At: noon.Add(-12 * time.Minute)})
	feed(p, "front", 0.01, 0.5)
	a := answer(t, p, shop(t))
	if a.Evidence.Departs || a.Suspects[0].Kind != incident.SuspectUnknown {
		t.Errorf("%+v", a)
	}
	var none *explain.NoRequests
	if _, err := explain.NewPast(explain.Symptom{Service: "front", At: noon}).Explain(shop(t)); !errors.As(err, &none) {
		t.Errorf("without requests: %v", err)
	}
}

// The job behind the demo's incident is the first suspect for each service that a person may ask about.
func TestAChangeBehindAResource(t *testing.T) {
	s, err := scenario.Load(deploy.Demo, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.Parse("catalogue.yaml", s.Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 9, 13, 9, 0, 0, 0, time.UTC)
	pasts := map[string]*explain.Past{}
	for _, service := range []string{"pull-requests", "issues"} {
		pasts[service] = explain.NewPast(explain.Symptom{Service: service, At: at})
	}
	for sl := range s.Generate(3) {
		for _, p := range pasts {
			for i := range sl.Requests {
				p.Add(&sl.Requests[i])
			}
			for i := range sl.Gauges {
				p.Add(&sl.Gauges[i])
			}
			for i := range sl.Changes {
				p.Add(&sl.Changes[i])
			}
		}
		if sl.To.After(at) {
			break
		}
	}
	for service, p := range pasts {
		if a := answer(t, p, c); a.Suspects[0].ID != "bgjob-88213" {
			t.Errorf("%s: %s suspects %+v", service, a.Evidence.Sentence, a.Suspects)
		}
	}
}
