package detect

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/rule"
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
	var s series
	for _, data := range []string{`{"Data":""}`, `{"Data":"/////w=="}`, `{"Data":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA//////8P"}`} {
		if err := s.UnmarshalJSON([]byte(data)); err == nil {
			t.Errorf("accepted %s", data)
		}
	}
}
