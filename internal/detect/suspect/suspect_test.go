package suspect

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var noon = time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func world(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	text := "services:\n  - {name: authz, depends_on: [db]}\n  - {name: lone}\n"
	for i := range 8 {
		text += fmt.Sprintf("  - {name: s%d, depends_on: [authz]}\n", i)
	}
	c, err := catalogue.Parse("catalogue.yaml", []byte(text+"resources:\n  - {name: db}\n  - {name: db2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// outage is a database that fills up from minute −70 on and takes eight services with it at noon.
func outage(t *testing.T) *Input {
	in := &Input{Now: at(10), Graph: world(t), Active: map[string]bool{"lone": true, "authz": true}}
	in.Resources = []Resource{{Name: "db", Metric: "connections", Level: 1, Full: true, FiredAt: at(-35), Trend: at(-70)}}
	for i := range 8 {
		in.Active[fmt.Sprintf("s%d", i)] = true
		in.Failing = append(in.Failing, Service{Name: fmt.Sprintf("s%d", i), Onset: at(0)})
	}
	return in
}

func rank(in *Input) (ids []string, by map[string]incident.Suspect) {
	by = map[string]incident.Suspect{}
	for _, s := range Rank(in) {
		ids = append(ids, s.ID)
		by[s.ID] = s
	}
	return ids, by
}

func TestTheJobThatBeganWithTheClimbIsFirstAmongADozen(t *testing.T) {
	in := outage(t)
	in.Changes = []Change{
		{ID: "cause", Kind: signal.Job, Target: "db", Started: at(-71)},
		{ID: "earlier-job", Kind: signal.Job, Target: "db", Started: at(-200), Ended: at(-150)},
		{ID: "later-job", Kind: signal.Job, Target: "db", Started: at(-20)},
		{ID: "other-db", Kind: signal.Job, Target: "db2", Started: at(-71)},
		{ID: "deploy-authz", Kind: signal.Deploy, Target: "authz", Started: at(-3), Ended: at(-1), Dose: 1},
		{ID: "deploy-lone", Kind: signal.Deploy, Target: "lone", Started: at(-2)},
		{ID: "no-target", Kind: signal.Flag, Started: at(-71)},
		{ID: "after", Kind: signal.Rollback, Target: "s1", Started: at(8)},
	}
	for i := range 8 {
		in.Changes = append(in.Changes, Change{ID: fmt.Sprintf("deploy-s%d", i), Kind: signal.Deploy, Target: fmt.Sprintf("s%d", i), Started: at(-i - 1), Dose: 1})
	}
	ids, by := rank(in)
	if ids[0] != "cause" || ids[1] != "db" {
		t.Fatalf("order %v", ids)
	}
	if by["cause"].Score < 0.4 {
		t.Errorf("score %v", by["cause"].Score)
	}
	for _, absent := range []string{"other-db", "deploy-lone", "after", "later-job"} {
		if slices.Contains(ids, absent) {
			t.Errorf("%s is suspected: %+v", absent, by[absent])
		}
	}
	reasons := strings.Join(by["cause"].Reasons, "; ")
	for _, want := range []string{"its target is db", "connections began to climb when the job began", "still running"} {
		if !strings.Contains(reasons, want) {
			t.Errorf("reasons lack %q: %s", want, reasons)
		}
	}
	if a := strings.Join(by["deploy-authz"].Against, "; "); !strings.Contains(a, "db ran out before that") {
		t.Errorf("against the deploy of authz: %s", a)
	}
}

func TestNamesDoNotMatter(t *testing.T) {
	for _, names := range [][2]string{{"aaa", "zzz"}, {"zzz", "aaa"}} {
		in := outage(t)
		in.Changes = []Change{
			{ID: names[0], Title: "harmless", Kind: signal.Job, Target: "db", Started: at(-70)},
			{ID: names[1], Title: "clean-up of permissions", Kind: signal.Job, Target: "db", Started: at(-200)},
		}
		if ids, _ := rank(in); ids[0] != names[0] {
			t.Errorf("%v first, want %s", ids, names[0])
		}
	}
}

func TestCounterEvidence(t *testing.T) {
	in := outage(t)
	in.Failing = in.Failing[:3]
	in.Resources[0].Low = []Low{{Resource: "db-replica", Metric: "replication lag", Level: -1}}
	_, by := rank(in)
	against := strings.Join(by["db"].Against, "; ")
	for _, want := range []string{"6 other services on db are healthy (authz, s3, s4, …)", "replication lag of db-replica stayed low, but it never vouches for a primary"} {
		if !strings.Contains(against, want) {
			t.Errorf("against lacks %q: %s", want, against)
		}
	}
}

func TestAChangeThatEndedWithTheTroubleGains(t *testing.T) {
	score := func(edit func(*Input)) float64 {
		in := outage(t)
		in.Changes = []Change{{ID: "job", Kind: signal.Job, Target: "db", Started: at(-100), Ended: at(60)}}
		in.Now = at(90)
		edit(in)
		_, by := rank(in)
		return by["job"].Score
	}
	recovered := score(func(in *Input) { in.Served = at(65) })
	went := score(func(in *Input) {})
	if recovered <= went+0.1 {
		t.Errorf("recovered after its end %v, went on after its end %v", recovered, went)
	}
}

func TestOneServicesDeployIsFirstWhereItAloneFails(t *testing.T) {
	in := &Input{Now: at(5), Graph: world(t), Active: map[string]bool{"s1": true}, Failing: []Service{{Name: "s1", Onset: at(0)}}}
	in.Changes = []Change{{ID: "d1", Kind: signal.Deploy, Target: "s1", Started: at(-2)}, {ID: "d2", Kind: signal.Deploy, Target: "s2", Started: at(-1)}}
	ids, _ := rank(in)
	if ids[0] != "d1" {
		t.Errorf("order %v", ids)
	}
}

func TestWithNothingToGoByTheCauseIsUnknown(t *testing.T) {
	in := &Input{Now: at(5), Graph: catalogue.Empty(), Failing: []Service{{Name: "s1", Onset: at(0)}}}
	got := Rank(in)
	if len(got) != 1 || got[0].Kind != incident.SuspectUnknown || got[0].Score != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTheServiceBelowIsSuspectedBeforeThoseAbove(t *testing.T) {
	in := outage(t)
	in.Resources = nil
	in.Failing = append(in.Failing, Service{Name: "authz", Onset: at(0)})
	slices.SortFunc(in.Failing, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	ids, by := rank(in)
	if ids[0] != "authz" || by["authz"].Kind != incident.SuspectService {
		t.Errorf("order %v", ids)
	}
}

func TestASliceThatExplainsTheFailures(t *testing.T) {
	in := &Input{Now: at(5), Graph: catalogue.Empty(), Failing: []Service{{Name: "s1", Onset: at(0)}}}
	model := signal.AttributesOf(signal.Attr{Name: "model", Value: "k3"})
	in.Slices = []incident.ScopeSlice{{Attributes: model, Share: 0.97}, {Attributes: "", Share: 1}}
	if ids, _ := rank(in); ids[0] != "model=k3" {
		t.Errorf("order %v", ids)
	}
	in.Slices = []incident.ScopeSlice{{Attributes: "", Share: 1}, {Attributes: model, Share: 0.5}}
	if ids, _ := rank(in); ids[0] != "unknown" {
		t.Errorf("where the whole explains more: %v", ids)
	}
}

func TestScoresAreSortedAndAddUp(t *testing.T) {
	in := outage(t)
	for i := range 30 {
		in.Changes = append(in.Changes, Change{ID: fmt.Sprint("c", i), Kind: signal.Deploy, Target: fmt.Sprint("s", i%8), Started: at(-i)})
	}
	got := Rank(in)
	sum := 0.0
	for i, s := range got {
		sum += s.Score
		if i > 0 && s.Score > got[i-1].Score || s.Reasons == nil || s.Against == nil {
			t.Errorf("suspect %d: %+v", i, s)
		}
	}
	if sum > 1.001 || len(got) > most+1 || math.IsNaN(sum) {
		t.Errorf("%d suspects with a sum of %v", len(got), sum)
	}
}
