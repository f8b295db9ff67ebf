package signal

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestAttributesAreOneValueWhateverTheOrder(t *testing.T) {
	a := AttributesOf(Attr{"site", "iad"}, Attr{"model", "k3"}, Attr{"empty", ""}, Attr{"site", "sea"})
	b := NewAttributes(map[string]string{"model": "k3", "site": "sea"})
	if a != b {
		t.Fatalf("%q and %q differ", a, b)
	}
	if a.Len() != 2 || a.Get("site") != "sea" || a.String() != "model=k3,site=sea" {
		t.Errorf("%d pairs, site %q, %s", a.Len(), a.Get("site"), a)
	}
	if !a.Contains(AttributesOf(Attr{"site", "sea"})) || !a.Contains("") || a.Contains(AttributesOf(Attr{"site", "iad"})) {
		t.Error("Contains is wrong")
	}
	j, err := json.Marshal(a)
	if err != nil || string(j) != `{"model":"k3","site":"sea"}` {
		t.Errorf("JSON %s, %v", j, err)
	}
	var back Attributes
	if err := json.Unmarshal(j, &back); err != nil || back != a {
		t.Errorf("back from JSON: %q, %v", back, err)
	}
}

func TestAttributesSurviveSeparatorsInForeignText(t *testing.T) {
	a := AttributesOf(Attr{"site", "i\x1fa\x1ed"}, Attr{"z", "1"})
	if a.Len() != 2 || a.Get("z") != "1" {
		t.Errorf("%q splits into %v", a, a.Map())
	}
}

func TestKeyIDTellsPathsApart(t *testing.T) {
	ids := map[uint64]Key{}
	for _, k := range []Key{
		{Path: Path{"a", "b", Read}}, {Path: Path{"a", "b", Write}}, {Path: Path{"ab", "", Write}}, {Path: Path{"a", "b", Write}, Attributes: AttributesOf(Attr{"x", "y"})},
	} {
		if o, ok := ids[k.ID()]; ok {
			t.Errorf("%v and %v have one id", k, o)
		}
		ids[k.ID()] = k
	}
}

// A stored id must mean the same for ever: rows of last month are joined with names of today.
func TestKeyIDIsStable(t *testing.T) {
	k := Key{Path: Path{"pull_requests", "merge", Write}, Attributes: AttributesOf(Attr{"site", "iad"})}
	if got := k.ID(); got != 0xeae4b1227c1a955e {
		t.Errorf("id %#x changed", got)
	}
}

func TestCellsAddUpInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []Request
	for i := range 500 {
		all = append(all, Request{
			Time: time.Unix(int64(i), 0), Outcome: Outcome(r.IntN(int(NumOutcomes))), Count: uint64(r.IntN(3)),
			Latency: time.Duration(r.IntN(60_000)-1) * time.Millisecond, Account: fmt.Sprint("acct-", r.IntN(200)),
			Attempt: uint32(r.IntN(3)), TraceID: fmt.Sprint(i),
		})
	}
	whole := Cell{}
	for i := range all {
		whole.Count(&all[i])
	}
	parts := make([]Cell, 7)
	for _, i := range r.Perm(len(all)) {
		parts[r.IntN(len(parts))].Count(&all[i])
	}
	var sum Cell
	for _, i := range r.Perm(len(parts)) {
		sum.Merge(&parts[i])
	}
	if fmt.Sprint(sum) != fmt.Sprint(whole) {
		t.Errorf("parts give\n%v\nthe whole is\n%v", sum, whole)
	}
	if len(whole.Samples) != MaxSamples || whole.Total() < 500 {
		t.Errorf("%d samples of %d requests", len(whole.Samples), whole.Total())
	}
}

func TestSketchCountsDistinctAccounts(t *testing.T) {
	var few, many Sketch
	for i := range 40 {
		few.Add(HashAccount(fmt.Sprint(i)))
		few.Add(HashAccount(fmt.Sprint(i)))
	}
	if few.Estimate() != 40 {
		t.Errorf("40 accounts counted as %d", few.Estimate())
	}
	for i := range 10_000 {
		many.Add(HashAccount(fmt.Sprint(i)))
	}
	// Four standard errors of 1/sqrt(62).
	if e := float64(many.Estimate()); e < 4_900 || e > 15_100 {
		t.Errorf("10000 accounts counted as %g", e)
	}
	few.Merge(many)
	if few.Estimate() != many.Estimate() {
		t.Errorf("a subset changed the union: %d, %d", few.Estimate(), many.Estimate())
	}
}

func TestLatencyBucketsHoldTheirBounds(t *testing.T) {
	for i := range LatencyBuckets - 1 {
		b := LatencyBound(i)
		if LatencyBucket(b) != i || LatencyBucket(b+1) != i+1 {
			t.Errorf("bound %v of bucket %d falls into %d, the next nanosecond into %d", b, i, LatencyBucket(b), LatencyBucket(b+1))
		}
	}
	if LatencyBucket(0) != 0 || LatencyBucket(time.Hour) != LatencyBuckets-1 {
		t.Error("the ends are wrong")
	}
	var l Latency
	l.Add(3*time.Second, 5)
	l.Add(10*time.Millisecond, 7)
	if l.Above(2*time.Second) != 5 || l.Total() != 12 {
		t.Errorf("%d above 2s of %d", l.Above(2*time.Second), l.Total())
	}
}

func TestBucketOf(t *testing.T) {
	at := time.Date(2026, 9, 13, 8, 43, 19, 999, time.FixedZone("", 5*3600+1800))
	if got, want := BucketOf(at), time.Date(2026, 9, 13, 3, 13, 10, 0, time.UTC); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("%v, want %v", got, want)
	}
}
