package backtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLabelsMayLackAnyPart(t *testing.T) {
	dir := t.TempDir()
	if l, err := ReadLabels(dir); l != nil || err != nil {
		t.Fatalf("no file: %v, %v", l, err)
	}
	text := `incidents:
  - {id: a, start: "2026-09-13T08:43:00.000Z", end: 2026-09-13T10:44:00Z, cause: {change: job-1}, note: kept}
  - {id: b}
quiet: [{from: "2026-09-13T00:00:00Z", to: "2026-09-13T07:00:00Z"}]
`
	if err := os.WriteFile(filepath.Join(dir, "labels.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLabels(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC); !l.Incidents[0].Start.Equal(want) || l.Incidents[0].Cause.Change != "job-1" {
		t.Errorf("first label: %+v", l.Incidents[0])
	}
	if !l.Incidents[1].Start.IsZero() || len(l.Quiet) != 1 {
		t.Errorf("labels: %+v", l)
	}
}
