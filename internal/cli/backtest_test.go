package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

const events = `{"type":"request","time":"2026-09-13T08:00:00Z","service":"issues","operation":"create","access":"write","outcome":"success","count":50}
this is no event
{"type":"gauge","time":"2026-09-13T08:05:00Z","resource":"mysql/collab/primary","metric":"connections","value":10,"limit":100}
`

// Programs read the standard output of a backtest: with --output json it is one object, whatever else there is to say.
func TestBacktestPrintsJSONAlone(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	write(t, filepath.Join(a, "events.jsonl"), events)
	write(t, filepath.Join(b, "events.jsonl"), events)
	write(t, filepath.Join(b, "labels.yaml"), "incidents: []\nquiet: [{from: 2026-09-13T08:00:00Z, to: 2026-09-13T08:05:00Z}]\n")
	got := call(t, Env{}, "backtest", a, b, "--output", "json")
	var v struct {
		Recordings []struct {
			Name      string
			Incidents []json.RawMessage
			Score     *json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(got.out), &v); got.code != 0 || err != nil {
		t.Fatalf("%d %v: %s%s", got.code, err, got.out, got.err)
	}
	if r := v.Recordings; len(r) != 2 || r[0].Name != "first" || r[1].Name != "second" || r[0].Incidents == nil || r[0].Score != nil || r[1].Score == nil {
		t.Errorf("recordings %+v", v.Recordings)
	}
	if !strings.Contains(got.err, filepath.Join(a, "events.jsonl")+":2") {
		t.Errorf("the line that is no event is not named: %q", got.err)
	}
	got = call(t, Env{}, "backtest", a, "--restart-at", "2026-09-13T08:02:00Z")
	if got.code != 0 || !strings.Contains(got.out, "first  2026-09-13 08:00:00 – 2026-09-13 08:05:00\n  no incident\n  0 findings fired\n") {
		t.Errorf("as text: %+v", got)
	}
}

// A folder that is wrong is told before the first replay, which may take minutes, and all of them together.
func TestBacktestChecksAllFoldersFirst(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "set", "good")
	write(t, filepath.Join(good, "events.jsonl"), events)
	write(t, filepath.Join(dir, "deep", "er", "one", "events.jsonl"), events)
	labels := filepath.Join(dir, "labels")
	write(t, filepath.Join(labels, "events.jsonl"), events)
	write(t, filepath.Join(labels, "labels.yaml"), "incidents: [{colour: red, start: yesterday}]\n")
	catalogue := filepath.Join(dir, "catalogue")
	write(t, filepath.Join(catalogue, "events.jsonl"), events)
	write(t, filepath.Join(catalogue, "catalogue.yaml"), "services: {}\n")
	got := call(t, Env{}, "backtest", good, filepath.Join(dir, "none"), filepath.Join(dir, "set"), filepath.Join(dir, "deep"), labels, catalogue)
	for _, want := range []string{
		"none has no events.jsonl", "set is no recording but holds 1: name each, for example " + good,
		"deep is no recording but holds 1: name each, for example " + filepath.Join(dir, "deep", "er", "one"),
		"labels.yaml:1:", "catalogue.yaml:1:",
	} {
		if got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%d, no %q in %s", got.code, want, got.err)
		}
	}
	if got.out != "" {
		t.Errorf("something was replayed: %s", got.out)
	}
}
