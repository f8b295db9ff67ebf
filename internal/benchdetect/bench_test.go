package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Both sides have to find the same, and what the world is made to have wrong with it: otherwise their costs are of different things.
func TestBothSidesFindTheSame(t *testing.T) {
	c := config{Slices: 500, Warm: 361, Ticks: 1}
	own, err := runTicks(c)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(c.Slices, troubleFrom(c.Warm))
	if err != nil {
		t.Fatal(err)
	}
	troubled := map[string]bool{}
	for i, k := range w.keys {
		if w.bad[i].from > 0 {
			troubled[finding(k.Service, k.Operation, k.Access.String())] = true
		}
	}
	found := map[string]bool{}
	rules := map[string]bool{}
	for _, f := range own.Firing {
		rule, key, _ := strings.Cut(f, " ")
		rules[rule] = true
		key, _, _ = strings.Cut(key, " region")
		found[key] = true
	}
	for k := range troubled {
		if !found[k] {
			t.Errorf("%s is in trouble, and nothing was found", k)
		}
	}
	for k := range found {
		if !troubled[k] {
			t.Errorf("%s is well, and something was found", k)
		}
	}
	if len(rules) < len(judgements)-2 { // one of reads and writes may have no trouble in a world of this size
		t.Errorf("only %d of %d rules found anything", len(rules), len(judgements))
	}

	program, err := filepath.Abs("../../bin/promrules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("bin/promrules is not there: make promrules builds it")
	}
	for _, v := range variants {
		other, err := runPrometheus(t.Context(), c, program, v, 0)
		if err != nil {
			t.Fatal(err)
		}
		if missing, more := apart(own.Firing, other.Firing); len(missing)+len(more) > 0 || !slices.Equal(own.Firing, other.Firing) {
			t.Errorf("%s: only Tocsin found %q, only Prometheus %q", v.name, missing, more)
		}
	}
}
