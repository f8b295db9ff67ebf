package backtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/signal"
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
	o := shipped(t)
	n := 0
	err := filepath.WalkDir(publicData(t), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), "events.jsonl") {
			return err
		}
		n++
		t.Run(filepath.Base(filepath.Dir(p)), func(t *testing.T) {
			t.Parallel()
			plausible(t, filepath.Dir(p), o)
		})
		return nil
	})
	if err != nil || n < 100 {
		t.Fatalf("%d recordings, %v", n, err)
	}
}

func plausible(t *testing.T, dir string, o Options) {
	rec, err := Run(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range rec.Incidents {
		// What is missing is missing at the end of the last event's bucket.
		if in.StartedAt == nil || in.StartedAt.After(rec.To.Add(signal.BucketSize)) || len(in.Timeline) == 0 || in.Impact.PeakShare < 0 || in.Impact.PeakShare > 1 {
			t.Errorf("%+v", in)
		}
		for i := 1; i < len(in.Suspects); i++ {
			if in.Suspects[i].Score > in.Suspects[i-1].Score {
				t.Errorf("suspects of %s are not in order", in.ID)
			}
		}
	}
	// Days without a fault on which some inner services fail most of their requests all the time: nobody is woken in quiet hours.
	switch {
	case rec.Score == nil:
		t.Error("it has labels and no score")
	case rec.Name == "normal" && rec.Score.FalsePages > 0:
		t.Errorf("%d false pages in %.0f quiet hours", rec.Score.FalsePages, rec.Score.QuietHours)
	}
}
