package app

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestMain(m *testing.M) { chlocaltest.Main(m) }

func config(t *testing.T, text string) *Config {
	t.Helper()
	c, err := ParseConfig(t.TempDir()+"/tocsin.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const minimal = "kafka: {brokers: ['127.0.0.1:1']}\n"

// A missing or doubled constructor is found here, without running anything.
func TestWiringIsComplete(t *testing.T) {
	if err := fx.ValidateApp(wiring(Options{Config: config(t, minimal)})); err != nil {
		t.Fatal(err)
	}
}

// The graph of constructors is the picture of the process; a change of it should be seen in a review.
func TestWiringGraph(t *testing.T) {
	var graph fx.DotGraph
	a := fx.New(wiring(Options{Config: offline(t), Stderr: io.Discard}), fx.Populate(&graph), fx.NopLogger, withSecrets(t))
	startAndStop(t, a)
	got := string(graph)
	if *update {
		if err := os.WriteFile("wiring.dot", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("wiring.dot")
	if err != nil || string(want) != got {
		t.Errorf("the wiring differs from wiring.dot (%v): if that is meant, run `go test ./internal/app -update`", err)
	}
	if !strings.Contains(got, "ingest.Loop") {
		t.Error("the graph has no ingest loop")
	}
}
