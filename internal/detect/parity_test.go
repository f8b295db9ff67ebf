package detect

import (
	"bytes"
	"testing"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestEachKindOfRuleHasItsEvaluator(t *testing.T) {
	for _, k := range rule.KindNames() {
		if evaluators[k] == nil {
			t.Errorf("kind %s has no evaluator", k)
		}
	}
	if len(evaluators) != len(rule.Kinds) {
		t.Errorf("%d evaluators for %d kinds", len(evaluators), len(rule.Kinds))
	}
}

func TestSnapshotsFromOutsideAreRefusedWithoutPanic(t *testing.T) {
	d := New(Config{})
	good, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		bad := append([]byte{}, good...)
		bad[n] ^= 0x55
		_ = d.Restore(bad)
		_ = d.Restore(good[:n])
	}
	for _, data := range [][]byte{{}, {0xff, 0xff, 0xff, 0xff, 0x0f}, bytes.Repeat([]byte{0xff}, 400), bytes.Repeat([]byte{9}, 400)} {
		r := unpacker{b: data}
		if r.series(colTimed); r.err == nil {
			t.Errorf("accepted %x", data)
		}
	}
	// What can be read is packed by the packer as it was.
	s := &series{key: signal.Key{Path: signal.Path{Service: "s"}}}
	x := tally{outcomes: [signal.NumOutcomes]uint64{3, 300, 70_000, 1 << 40}, total: 3 + 300 + 70_000 + 1<<40, timed: 2, slow: []uint64{0, 1}}
	s.add(1000, &x, &plan{columns: columnsFor(2)})
	s.meet(1000, signal.Sketch{1, 2})
	var w, again packer
	w.series(s)
	r := unpacker{b: w.b}
	again.series(r.series(columnsFor(2)))
	if r.err != nil || !bytes.Equal(w.b, again.b) {
		t.Errorf("%d bytes became %d, %v", len(w.b), len(again.b), r.err)
	}
	for n := range w.b {
		r := unpacker{b: w.b[:n]}
		if r.series(columnsFor(2)); r.err == nil {
			t.Fatalf("accepted %d of %d bytes", n, len(w.b))
		}
	}
}
