package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
)

// A minute of `make chaos`: real daemons are killed and stopped, their requests delayed, lost and cut off, brokers and
// ClickHouse die, and everything must be stored once.
func TestEverythingIsStoredOnceWhateverDies(t *testing.T) {
	r := run(t, Options{Seed: seed(t), Faults: 40, Events: 400_000, Duration: 35 * time.Second, PerRecord: 100, Parallel: 6})
	if !r.OK() {
		t.Errorf("missing %d, double %d, wrong %d, stuck %d", r.Missing, r.Double, r.Wrong, len(r.Stuck))
	}
	if r.Faults < 5 || r.Counted < 50_000 {
		t.Errorf("%d faults over %d events show nothing", r.Faults, r.Counted)
	}
}

// seed is a fixed one, so that a failure comes again as far as it can; TOCSIN_SEED sets another.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("TOCSIN_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("TOCSIN_SEED: %v", err)
	}
	return n
}

// run runs a campaign on programs built from this checkout.
func run(t *testing.T, o Options) *Report {
	t.Helper()
	o.Engine, o.Dir = chlocaltest.Options(t).Binary, t.TempDir()
	o.Binary = filepath.Join(t.TempDir(), "tocsin")
	if out, err := exec.Command("go", "build", "-o", o.Binary, "../../cmd/tocsin").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var text strings.Builder
	o.Out = &text
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, &text)
	}
	r.Write(&text)
	t.Log(text.String())
	return r
}
