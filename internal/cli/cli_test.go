package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/respond/rehearse"
	"github.com/tocsin-project/tocsin/internal/respond/route"
)

// said is what a call of the command line came to.
type said struct {
	code     int
	out, err string
}

// call runs the command line with an environment in which nothing is wired.
func call(t *testing.T, env Env, args ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	env.Stdout, env.Stderr, env.Version = &out, &errs, "1.2.3"
	if env.Routes == nil {
		env.Routes = func(file string) (*route.Config, error) {
			if file != "" {
				return nil, errors.New("reading routes: no " + file)
			}
			return &route.Config{Route: &route.Route{}}, nil
		}
	}
	code := Execute(t.Context(), env, args)
	return said{code, out.String(), errs.String()}
}

// Scripts tell a wrong call (2) from what went wrong (1), and read the reason on standard error.
func TestWrongCalls(t *testing.T) {
	t.Setenv("TOCSIN_URL", "http://127.0.0.1:1")
	dir := t.TempDir()
	for _, v := range []struct {
		args string
		code int
		err  string
	}{
		{"", 0, ""},
		{"incident", 0, ""},
		{"--version", 0, ""},
		{"incdent", 2, `tocsin: no command "incdent", perhaps you mean incident`},
		{"incident lst", 2, `tocsin incident has no command "lst", perhaps you mean list`},
		{"pipeline tru", 2, `perhaps you mean try`},
		{"--nonsense", 2, "unknown flag: --nonsense; see `tocsin --help`"},
		{"run now", 2, `tocsin run takes no argument, got "now"`},
		{"demo --speed fast", 2, `invalid argument "fast" for "--speed"`},
		{"demo --speed=-3", 2, "--speed"},
		{"check x", 2, "takes no argument"},
		{"drill x", 2, "takes no argument"},
		{"incident show", 2, "wants the id of an incident"},
		{"incident show a b", 2, "wants the id of an incident"},
		{"incident acknowledge a", 2, "--by: say who you are"},
		{"incident merge a --by ada", 2, "--into: say which incident"},
		{"incident list --output xml", 2, `--output is text or json, not "xml"`},
		{"incident list --url localhost", 2, `--url "localhost" is no address such as http://127.0.0.1:9460`},
		{"incident list --url ftp://x", 2, `--url "ftp://x" is no address`},
		{"incident list", 1, "no Tocsin answers at http://127.0.0.1:1: dial tcp 127.0.0.1:1"},
		{"why a", 1, "no Tocsin answers"},
		{"drill", 1, "no Tocsin answers"},
		{"backtest", 2, "wants at least one folder"},
		{"backtest --output xml x", 2, "--output is text or json"},
		{"backtest --restart-at noon x", 2, "is no RFC 3339 time"},
		{"backtest --rules " + dir + "/none x", 1, "reading rules: stat " + dir + "/none"},
		{"backtest --routes none x", 1, "reading routes: no none"},
		{"backtest " + dir + "/none", 1, dir + "/none has no events.jsonl"},
		{"test " + dir + "/none", 1, dir + "/none: no such file"},
		{"test " + dir, 1, "no *_test.yaml is in " + dir},
	} {
		got := call(t, Env{}, strings.Fields(v.args)...)
		if got.code != v.code || !strings.Contains(got.err, v.err) || (v.err == "") != (got.err == "") {
			t.Errorf("tocsin %s: %d %q, want %d with %q", v.args, got.code, got.err, v.code, v.err)
		}
		if v.code == 2 && got.out != "" {
			t.Errorf("tocsin %s: a wrong call wrote to standard output: %q", v.args, got.out)
		}
	}
}

func TestRunAndDemoAreHandedTheirFlags(t *testing.T) {
	var run RunOptions
	var demo DemoOptions
	env := Env{
		Run:  func(_ context.Context, o RunOptions) error { run = o; return errors.New("no configuration") },
		Demo: func(_ context.Context, o DemoOptions) error { demo = o; return nil },
	}
	if got := call(t, env, "run", "--config.file=x.yaml", "--exit-with-parent"); got.code != 1 || got.err != "tocsin: no configuration\n" {
		t.Errorf("a failed run: %+v", got)
	}
	if want := (RunOptions{Config: "x.yaml", ExitWithParent: true}); run != want {
		t.Errorf("run got %+v", run)
	}
	if got := call(t, env, "demo", "--exit", "--seed=7", "--speed=60", "--fresh=false", "--dir=d"); got.code != 0 {
		t.Errorf("a demo: %+v", got)
	}
	if want := (DemoOptions{Scenario: "2026-09-13", Seed: 7, Exit: true, Dir: "d", Speed: 60, Listen: "127.0.0.1:9460"}); demo != want {
		t.Errorf("demo got %+v", demo)
	}
}

func TestCheckSaysWhatItFound(t *testing.T) {
	env := Env{CheckConfig: func(file string) ([]string, error) {
		if file == "bad.yaml" {
			return []string{"3 pipelines"}, errors.New("bad.yaml:2:3: unknown field")
		}
		return []string{"3 pipelines"}, nil
	}}
	if got := call(t, env, "check"); got != (said{0, "3 pipelines\n", ""}) {
		t.Errorf("%+v", got)
	}
	if got := call(t, env, "check", "--config.file=bad.yaml"); got != (said{1, "3 pipelines\n", "bad.yaml:2:3: unknown field\n"}) {
		t.Errorf("%+v", got)
	}
}

func TestTestsOfRulesAndPipelines(t *testing.T) {
	got := call(t, Env{Respond: rehearse.New}, "test")
	if got.code != 0 || !strings.Contains(got.out, " passed, 0 failed\n") || !strings.Contains(got.out, "ok    telemetry/failures_test.yaml: ") ||
		!strings.Contains(got.out, "ok    routes_test.yaml: ") {
		t.Errorf("what is shipped: %d %s %.300s", got.code, got.err, got.out)
	}
	// One folder may hold both, as a checkout does.
	root := filepath.Join("..", "..")
	dir := t.TempDir()
	for _, f := range []string{"pipelines/tickets.yaml", "pipelines/tickets_test.yaml", "rules/support/tickets.yaml", "rules/support/tickets_test.yaml"} {
		data, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, f), string(data))
	}
	got = call(t, Env{}, "test", dir)
	for _, want := range []string{"ok    " + dir + "/pipelines/tickets_test.yaml: ", "ok    " + dir + "/rules/support/tickets_test.yaml: ", " 0 failed"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("a folder of both: %d, no %q in\n%s%s", got.code, want, got.out, got.err)
		}
	}
	write(t, filepath.Join(dir, "pipelines", "tickets.yaml"), "name: tickets\ntopic: t\nstream: requests\ndecoder: json\n")
	if got = call(t, Env{}, "test", dir); got.code != 1 || !strings.Contains(got.out, "FAIL  "+dir+"/pipelines: its tests can't all be run\n      tickets_test.yaml:2:5: ") || !strings.Contains(got.out, "ok    "+dir+"/rules/") {
		t.Errorf("a broken one: %+v", got)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
