package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oneSite is a recording in which one of two sites fails from 08:30 on.
func oneSite(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "iad-is-not-it")
	var b strings.Builder
	for m := range 40 {
		at := time.Date(2026, 9, 13, 8, m, 0, 0, time.UTC).Format(time.RFC3339)
		for _, site := range []string{"fra", "iad"} {
			bad := 1
			if site == "fra" && m >= 30 {
				bad = 200
			}
			fmt.Fprintf(&b, `{"type":"request","time":%q,"service":"issues","operation":"create","access":"write","outcome":"success","count":%d,"attributes":{"site":%q}}`+"\n", at, 500-bad, site)
			fmt.Fprintf(&b, `{"type":"request","time":%q,"service":"issues","operation":"create","access":"write","outcome":"failure","count":%d,"attributes":{"site":%q}}`+"\n", at, bad, site)
		}
	}
	write(t, filepath.Join(dir, "events.jsonl"), b.String())
	// The truth is nobody's business here: what cannot be read is not even noticed.
	if err := os.Mkdir(filepath.Join(dir, "labels.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExplainFolder(t *testing.T) {
	dir := oneSite(t)
	got := call(t, Env{}, "explain", dir, "--service", "issues", "--at", "2026-09-13T08:35:00Z", "--output", "json")
	var a struct {
		Scope []struct {
			Attributes map[string]string
			Share      float64
		}
		Suspects []map[string]any
		Evidence struct {
			Signal string
			Onset  time.Time
		}
	}
	if err := json.Unmarshal([]byte(got.out), &a); got.code != 0 || err != nil {
		t.Fatalf("%d %v: %s%s", got.code, err, got.out, got.err)
	}
	if len(a.Scope) == 0 || a.Scope[0].Attributes["site"] != "fra" || a.Scope[0].Share < 0.9 {
		t.Errorf("scope %+v", a.Scope)
	}
	for _, s := range a.Suspects {
		if len(s) != 5 || s["kind"] == nil || s["id"] == nil || s["score"] == nil || s["reasons"] == nil || s["against"] == nil {
			t.Errorf("a suspect has other keys than a backtest's: %v", s)
		}
	}
	if a.Suspects[0]["id"] != "site=fra" {
		t.Errorf("suspects %v", a.Suspects)
	}
	if want := time.Date(2026, 9, 13, 8, 29, 0, 0, time.UTC); a.Evidence.Signal != "failures" || a.Evidence.Onset.Sub(want).Abs() > time.Minute {
		t.Errorf("evidence %+v", a.Evidence)
	}
	got = call(t, Env{}, "explain", dir, "--service", "issues", "--operation", "create", "--access", "write", "--signal", "failures", "--at", "2026-09-13T08:35:00Z")
	for _, want := range []string{
		"issues create write: 20% of 6000 requests failed since 08:29 UTC, 0.20% before: 1194 more than usual", "*2026-09-13 08:29:00      1000     201  20.10%",
		" 1. 100%  site=fra", " 1. attributes site=fra (", "      + 100% of what is beyond the usual is in it",
	} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%d, no %q in\n%s%s", got.code, want, got.out, got.err)
		}
	}
}

func TestExplainRefuses(t *testing.T) {
	dir := oneSite(t)
	for _, v := range []struct {
		args string
		code int
		err  string
	}{
		{"explain --at 2026-09-13T08:35:00Z", 2, "--service"},
		{"explain --service issues", 2, "--at"},
		{"explain --service issues --at 08:35", 2, `--at "08:35" is no RFC 3339 time`},
		{"explain --service issues --at 2026-09-13T08:35:00Z --access maybe", 2, "neither read nor write"},
		{"explain --service issues --at 2026-09-13T08:35:00Z --signal pain", 2, "failures or latency"},
		{"explain --service issues --at 2026-09-13T08:35:00Z", 1, "no access to stored history"},
		{"explain a b", 2, "one folder at most"},
		{"explain " + dir + " --service isues --at 2026-09-13T08:35:00Z", 1, "no requests of isues in the 4 hours before 2026-09-13T08:35:00Z; services with some: issues"},
	} {
		if got := call(t, Env{}, strings.Fields(v.args)...); got.code != v.code || !strings.Contains(got.err, v.err) || got.out != "" {
			t.Errorf("%s: %+v", v.args, got)
		}
	}
}
