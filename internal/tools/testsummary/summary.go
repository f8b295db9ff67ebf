package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const (
	maxOutput = 1 << 20 // of one test; the beginning says more than the rest
	maxNamed  = 6       // tests named with one reason for skipping
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

type testKey struct{ pkg, test string } // an empty test is the package itself

// summary counts as go test does: a test and each of its subtests. A package that fails without a failed test (it does
// not build, it panics outside a test, it leaks goroutines) counts as one failure.
type summary struct {
	out                     io.Writer
	output                  map[testKey]*strings.Builder
	running                 map[testKey]bool
	failedIn                map[string]int
	skips                   map[string][]string // reason → tests
	passed, failed, skipped int
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out: out, output: map[testKey]*strings.Builder{}, running: map[testKey]bool{},
		failedIn: map[string]int{}, skips: map[string][]string{},
	}
}

// read prints as packages finish. A line that is no event, such as an error of the go command, is printed as it is.
func (s *summary) read(in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(s.out, line)
			} else {
				s.handle(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) handle(e event) {
	key := testKey{e.Package, e.Test}
	switch e.Action {
	case "run":
		s.running[key] = true
	case "output":
		s.keep(key, e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e.Package, e.Action)
		} else {
			s.endTest(key, e.Action)
		}
	}
}

func (s *summary) keep(key testKey, text string) {
	if key.test != "" && strings.HasPrefix(text, "=== ") {
		return // RUN, PAUSE and CONT say nothing about why
	}
	b := s.output[key]
	if b == nil {
		b = &strings.Builder{}
		s.output[key] = b
	}
	if b.Len() < maxOutput {
		b.WriteString(text)
	}
}

func (s *summary) take(key testKey) string {
	b := s.output[key]
	delete(s.output, key)
	if b == nil {
		return ""
	}
	return b.String()
}

func (s *summary) endTest(key testKey, action string) {
	delete(s.running, key)
	text := s.take(key)
	switch action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
		s.failedIn[key.pkg]++
		fmt.Fprint(s.out, text)
	case "skip":
		s.skipped++
		reason := skipReason(text)
		s.skips[reason] = append(s.skips[reason], key.pkg[strings.LastIndex(key.pkg, "/")+1:]+"."+key.test)
	}
}

func (s *summary) endPackage(pkg, action string) {
	text := s.take(testKey{pkg, ""})
	if action != "fail" {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? ") || strings.HasPrefix(line, "\t") {
				fmt.Fprint(s.out, line)
			}
		}
		return
	}
	for key := range s.running { // tests that a panic or a time-out cut off have no end of their own
		if key.pkg == pkg {
			delete(s.running, key)
			fmt.Fprint(s.out, s.take(key))
			fmt.Fprintf(s.out, "--- FAIL: %s (did not end)\n", key.test)
			s.failed++
			s.failedIn[pkg]++
		}
	}
	if s.failedIn[pkg] == 0 {
		s.failed++
		s.failedIn[pkg]++
	}
	fmt.Fprint(s.out, text)
}

// finish prints what stands below all packages and reports whether everything passed. No event at all is a failure:
// a run that tested nothing must not look like one that passed.
func (s *summary) finish() bool {
	if len(s.skips) > 0 {
		fmt.Fprintln(s.out, "\nskipped:")
		for _, reason := range slices.Sorted(maps.Keys(s.skips)) {
			tests := s.skips[reason]
			more := ""
			if len(tests) > maxNamed {
				more = fmt.Sprintf(" and %d more", len(tests)-maxNamed)
				tests = tests[:maxNamed]
			}
			fmt.Fprintf(s.out, "  %s: %s%s\n", reason, strings.Join(tests, ", "), more)
		}
	}
	if len(s.failedIn) > 0 {
		fmt.Fprintln(s.out, "\nfailed packages:")
		for _, pkg := range slices.Sorted(maps.Keys(s.failedIn)) {
			fmt.Fprintf(s.out, "  %s (%d)\n", pkg, s.failedIn[pkg])
		}
	}
	fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	if s.passed+s.failed+s.skipped == 0 {
		fmt.Fprintln(s.out, "no test ran")
		return false
	}
	return s.failed == 0
}

// skipReason is the last line that the test printed before it was skipped, without its file and line.
func skipReason(text string) string {
	reason := "no reason given"
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "--- SKIP") {
			continue
		}
		if place, rest, found := strings.Cut(trimmed, ": "); found && strings.Contains(place, ".go:") {
			trimmed = rest
		}
		reason = trimmed
	}
	return reason
}
