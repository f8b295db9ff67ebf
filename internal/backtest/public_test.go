package backtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// publicData is beside the checkout, on machines that have it.
func publicData(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the public recordings (../shared/data beside the checkout) are not on this machine")
	}
	return dir
}

// Every public recording runs through without an error, and says nothing that cannot be: incidents within the recording,
// shares between 0 and 1, suspects in order.
func TestPublicRecordings(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	n := 0
	err := filepath.WalkDir(publicData(t), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), "events.jsonl") {
			return err
		}
		n++
		rec, err := Run(t.Context(), filepath.Dir(p), shipped(t))
		if err != nil {
			t.Errorf("%s: %v", filepath.Dir(p), err)
			return nil
		}
		for _, in := range rec.Incidents {
			if in.StartedAt == nil || in.StartedAt.After(rec.To) || len(in.Timeline) == 0 || in.Impact.PeakShare < 0 || in.Impact.PeakShare > 1 {
				t.Errorf("%s: %+v", rec.Name, in)
			}
			for i := 1; i < len(in.Suspects); i++ {
				if in.Suspects[i].Score > in.Suspects[i-1].Score {
					t.Errorf("%s: suspects of %s are not in order", rec.Name, in.ID)
				}
			}
		}
		// Days without a fault on which some inner services fail most of their requests all the time: nobody is woken in quiet hours.
		if rec.Score != nil && rec.Name == "normal" && rec.Score.FalsePages > 0 {
			t.Errorf("%s: %d false pages in %.0f quiet hours", p, rec.Score.FalsePages, rec.Score.QuietHours)
		}
		if rec.Score == nil {
			t.Errorf("%s has labels and no score", rec.Name)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("%d recordings, %v", n, err)
	}
	t.Logf("%d recordings", n)
}
