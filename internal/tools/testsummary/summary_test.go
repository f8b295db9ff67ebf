package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A module of its own, so that its failing tests are not this module's.
var sample = map[string]string{
	"go.mod":           "module sample\n\ngo 1.26\n",
	"good/a_test.go":   "package a\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Log(\"quiet\"); t.Run(\"x\", func(t *testing.T) {}); t.Run(\"y\", func(t *testing.T) { t.Skip(\"needs a moon\") }) }\n",
	"bad/b_test.go":    "package b\nimport \"testing\"\nfunc TestB(t *testing.T) { t.Run(\"x\", func(t *testing.T) { t.Error(\"the bell is silent\") }) }\nfunc TestC(t *testing.T) {}\n",
	"panics/p_test.go": "package p\nimport \"testing\"\nfunc TestP(t *testing.T) { done := make(chan bool); go func() { panic(\"out of bells\") }(); <-done }\n",
	"main/m_test.go":   "package m\nimport (\"os\"; \"testing\")\nfunc TestM(t *testing.T) {}\nfunc TestMain(m *testing.M) { m.Run(); println(\"leaked\"); os.Exit(3) }\n",
	"broken/k_test.go": "package k\nimport \"testing\"\nfunc TestK(t *testing.T) { undefinedName() }\n",
	"none/n.go":        "package n\n",
}

func run(t *testing.T, packages ...string) (string, bool) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sample {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	events, _ := cmd.Output() // it fails where tests fail, which is the subject
	if len(events) == 0 {
		t.Fatal("go test printed nothing")
	}
	var out strings.Builder
	s := newSummary(&out)
	if err := s.read(strings.NewReader(string(events))); err != nil {
		t.Fatal(err)
	}
	passed := s.finish()
	return out.String(), passed
}

func TestSummary(t *testing.T) {
	out, passed := run(t, "./...")
	if passed {
		t.Error("failures are reported as success")
	}
	for _, want := range []string{
		"ok  \tsample/good", "FAIL\tsample/bad", "the bell is silent", "panic: out of bells", "leaked", "undefinedName",
		"FAIL\tsample/broken [build failed]", "?   \tsample/none\t[no test files]",
		"  needs a moon: good.TestA/y\n", "  sample/broken (1)\n", "  sample/main (1)\n", "  sample/panics (1)\n", "  sample/bad (2)\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "quiet") {
		t.Errorf("the output of passing tests is shown:\n%s", out)
	}
	if !strings.HasSuffix(out, "\n4 passed, 5 failed, 1 skipped\n") {
		t.Errorf("closing line:\n%s", out)
	}
}

func TestAllPassed(t *testing.T) {
	out, passed := run(t, "./good", "./none")
	if !passed || !strings.HasSuffix(out, "\n2 passed, 0 failed, 1 skipped\n") {
		t.Errorf("passed = %v:\n%s", passed, out)
	}
}

func TestNothingRanIsNoSuccess(t *testing.T) {
	var out strings.Builder
	s := newSummary(&out)
	if err := s.read(strings.NewReader("go: no such directory\n")); err != nil {
		t.Fatal(err)
	}
	if s.finish() || !strings.Contains(out.String(), "go: no such directory") || !strings.Contains(out.String(), "no test ran") {
		t.Errorf("got:\n%s", out.String())
	}
}
