package docstest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/cli"
	"github.com/tocsin-project/tocsin/internal/console"
)

var makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):.*## `)

// lines yields the commands of a shell block, with lines that end in a backslash joined.
func lines(b block) []string {
	var out []string
	for _, l := range strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n") {
		l, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(l), "$ "), " # ")
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

var quoted = regexp.MustCompile(`"[^"]*"`)

func TestCommandsExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	routes := http.NewServeMux()
	c, err := console.New(console.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.Register(routes)
	for _, p := range []string{"GET /metrics", "GET /-/healthy", "GET /-/ready", "POST /ingest/{pipeline}", "POST /api/v2/alerts"} { // these are the application's
		routes.HandleFunc(p, func(http.ResponseWriter, *http.Request) {})
	}
	n := 0
	for _, b := range blocks(t, "shell") {
		for _, line := range lines(b) {
			words := strings.Fields(line)
			switch filepath.Base(words[0]) {
			case "tocsin":
				n++
				if out, ok := understood(words[1:]); !ok {
					t.Errorf("%s: %s: %s", b, line, out)
				}
			case "make":
				n++
				for _, w := range strings.Fields(quoted.ReplaceAllString(line, `""`))[1:] { // a value in quotes may hold blanks
					if !targets[w] && !strings.ContainsAny(w, `="`) && w[0] != '-' {
						t.Errorf("%s: %s: the Makefile has no target %q", b, line, w)
					}
				}
			case "curl":
				n++
				if why := reachable(routes, words[1:]); why != "" {
					t.Errorf("%s: %s: %s", b, line, why)
				}
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d commands were looked at: the pages or this test are broken", n)
	}
}

// understood asks the command line for help on the command with its flags: an unknown command or flag is an error
// before help is shown, and nothing runs.
func understood(args []string) (string, bool) {
	var out bytes.Buffer
	env := cli.Env{Stdout: &out, Stderr: &out, Version: "test"}
	if cli.Execute(context.Background(), env, append(args, "--help")) != 0 {
		return out.String(), false
	}
	// An unknown subcommand shows its parent's help; then the usage line lacks the word.
	var path []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") || strings.ToUpper(a) == a || strings.ContainsAny(a, "./=") {
			break
		}
		path = append(path, a)
	}
	if len(path) == 0 {
		return "", true
	}
	return "unknown command", strings.Contains(out.String(), "tocsin "+strings.Join(path, " "))
}

func reachable(mux *http.ServeMux, args []string) string {
	method := http.MethodGet
	for i, a := range args {
		a = strings.Trim(a, `'"`)
		switch {
		case a == "-X" && i+1 < len(args):
			method = args[i+1]
		case a == "-d" || a == "--data" || a == "--json":
			method = http.MethodPost
		case strings.HasPrefix(a, "http://"):
			u, err := url.Parse(a)
			if err != nil {
				return err.Error()
			}
			if _, pattern := mux.Handler(httptest.NewRequestWithContext(context.Background(), method, u.RequestURI(), io.NopCloser(strings.NewReader("")))); pattern == "" {
				return "Tocsin does not serve " + method + " " + u.Path
			}
		}
	}
	return ""
}

// The checks above must be able to fail.
func TestChecksRefuse(t *testing.T) {
	for _, args := range [][]string{{"explode"}, {"run", "--confg", "x"}, {"incident", "list", "--every"}, {"incident", "frobnicate", "ID"}, {"incident", "frobnicate"}} {
		if _, ok := understood(args); ok {
			t.Errorf("tocsin %s is accepted", strings.Join(args, " "))
		}
	}
	for _, args := range [][]string{{"run", "--config.file", "tocsin.yaml"}, {"incident", "acknowledge", "ID", "--by", "ada"}, {"why", "ID"}} {
		if out, ok := understood(args); !ok {
			t.Errorf("tocsin %s is refused: %s", strings.Join(args, " "), out)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a", func(http.ResponseWriter, *http.Request) {})
	if reachable(mux, []string{"-s", "http://127.0.0.1:1/b"}) == "" || reachable(mux, []string{"-X", "POST", "http://127.0.0.1:1/a"}) == "" {
		t.Error("an address that is not served is accepted")
	}
	if why := reachable(mux, []string{"-s", "'http://127.0.0.1:1/a'"}); why != "" {
		t.Error(why)
	}
}
