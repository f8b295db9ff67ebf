package measured_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/measured"
)

type run struct {
	Side  string
	Ticks []int
}

// A run of many ticks is a long line: one that is cut short, or left out, would change the medians without a word.
func TestRunsAreReadAsTheyWereKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	r := measured.Record[run](file)
	for i, n := range []int{1, 100_000, 2} {
		if err := r.Add(run{string(rune('a' + i)), slices.Repeat([]int{7}, n)}); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	if err := r.Each(func(x run) { got = append(got, len(x.Ticks)) }); err != nil || !slices.Equal(got, []int{1, 100_000, 2}) {
		t.Errorf("runs of %v ticks, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("{}\n{\"Side\": \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Each(func(run) {}); err == nil || !strings.Contains(err.Error(), "runs.jsonl:2: ") {
		t.Errorf("half a run: %v", err)
	}
}
