package detect

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/rule"
)

// shelf is a store of texts that is empty, or does not answer.
type shelf struct {
	Timeline
	err error
}

func (s shelf) Source(context.Context, string, string) (Source, bool, error) {
	return Source{}, false, s.err
}

// A stored tick is judged by the rules that it names. Where these are not kept it is judged by those that are in force, but that
// the database does not answer just now is no reason to: the replay would come to something else than people were told.
func TestAStoreThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	now := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	tick := Tick{From: now, To: now.Add(time.Minute), Rules: "of before"}
	old := New(Config{Rules: &rule.Set{Revision: "of before"}})
	snapshot, err := old.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, down := range []error{nil, errors.New("connection refused")} {
		cfg := Config{Rules: &rule.Set{Revision: "of now"}}
		l := NewLoop(shelf{err: down}, LoopConfig{Detector: cfg})
		d := New(cfg)
		if same, err := l.configure(t.Context(), d, &tick); same != d || !errors.Is(err, down) {
			t.Errorf("%v: a tick: %v", down, err)
		}
		if _, err := l.restored(t.Context(), snapshot); !errors.Is(err, down) {
			t.Errorf("%v: a checkpoint: %v", down, err)
		}
	}
}
