package localise_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tocsin-project/tocsin/internal/detect/localise"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// sites makes leaves of five sites and three models, of which the named sites fail since the onset.
func sites(bad map[string]bool) (out []localise.Leaf) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 5 {
		for m := range 3 {
			l := localise.Leaf{Attributes: signal.NewAttributes(map[string]string{"site": fmt.Sprint("s", i), "model": fmt.Sprint("m", m)})}
			l.BeforeTotal, l.Total = 20_000, 4_000
			l.BeforeFailures, l.Failures = 20+rnd.Uint64N(5), 4+rnd.Uint64N(3)
			if bad[l.Attributes.Get("site")] {
				l.Failures += 800
			}
			out = append(out, l)
		}
	}
	return out
}

// Two of five sites are no single slice: they come first, both, before the whole that contains them.
func TestSeveralValuesOfOneAttribute(t *testing.T) {
	got := localise.Scan(sites(map[string]bool{"s1": true, "s3": true}), 4)
	first := map[string]bool{got[0].Attributes.String(): true, got[1].Attributes.String(): true}
	if !first["site=s1"] || !first["site=s3"] {
		t.Errorf("%v", got)
	}
	for _, s := range got[:2] {
		if math.Abs(s.Share-0.5) > 0.05 {
			t.Errorf("%s has %.2f of the excess, want half", s.Attributes, s.Share)
		}
	}
}

// Trouble everywhere is nobody's.
func TestTheWholeComesFirstWhereNoSliceExplainsMore(t *testing.T) {
	all := map[string]bool{"s0": true, "s1": true, "s2": true, "s3": true, "s4": true}
	if got := localise.Scan(sites(all), 3); got[0].Attributes != "" {
		t.Errorf("%v", got)
	}
	if got := localise.Scan(sites(map[string]bool{"s2": true}), 3); got[0].Attributes.String() != "site=s2" {
		t.Errorf("one site: %v", got)
	}
}

func blocks(shares ...float64) (out []localise.Block) {
	for i, s := range shares {
		out = append(out, localise.Block{Total: 1000, Bad: math.Round(1000*s) + float64(i%3)})
	}
	return out
}

func TestOnset(t *testing.T) {
	c, ok := localise.Onset(blocks(.01, .01, .01, .01, .01, .01, .2, .2, .2))
	if !ok || c.At != 6 || c.Evidence < 10 || math.Abs(c.Since-0.2) > 0.01 {
		t.Errorf("a step: %+v %v", c, ok)
	}
	// One bad minute long before says nothing of where the step is, and little against it.
	c, ok = localise.Onset(blocks(.0, .0, .05, .0, .0, .0, .0, .0, .0, .0, .3, .3))
	if !ok || c.At != 10 || c.Evidence < 2 {
		t.Errorf("a step after a blip: %+v %v", c, ok)
	}
	if c, ok = localise.Onset(blocks(.2, .2, .2, .1, .1, .1)); ok && c.Evidence > 1 {
		t.Errorf("a fall is no onset: %+v", c)
	}
	// What has always swung is no evidence when it swings again.
	c, _ = localise.Onset(blocks(.1, .3, .1, .3, .1, .3, .1, .3, .1, .3, .1, .3))
	if c.Evidence > 2 {
		t.Errorf("swings: %+v", c)
	}
	if c, ok = localise.Onset(nil); ok {
		t.Errorf("nothing: %+v", c)
	}
}
