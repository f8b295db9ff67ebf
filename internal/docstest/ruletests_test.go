package docstest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/cli"
	"github.com/tocsin-project/tocsin/internal/respond/rehearse"
)

// testsOf tells the file of a block of rule tests, as in ```yaml tests rules/payments_test.yaml.
func testsOf(b block) (file string, ok bool) {
	file, ok = strings.CutPrefix(b.what, "tests ")
	return file, ok && b.lang == "yaml"
}

// Tests of rules that a page shows are run on the rules and the routes that it shows last before them. They pass, or a block of text
// that follows them, with commands between them at most, is what `tocsin test` prints.
func TestRuleTestsOfPagesComeToWhatThePagesSay(t *testing.T) {
	passed, failed := 0, 0
	for _, p := range pages(t) {
		last := map[string]block{}
		for i, b := range p.blocks {
			file, ok := testsOf(b)
			if !ok {
				last[b.what] = b
				continue
			}
			dir := t.TempDir()
			for name, text := range map[string]string{
				file: b.text, strings.TrimSuffix(file, "_test.yaml") + ".yaml": last["rules"].text, filepath.Join(filepath.Dir(file), "routes.yaml"): last["routes"].text,
			} {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, got := tested(t, dir, filepath.Dir(file))
			if code == 0 {
				passed++
			} else {
				failed++
			}
			next := i + 1
			for next < len(p.blocks) && p.blocks[next].lang == "shell" {
				next++
			}
			switch {
			case next < len(p.blocks) && p.blocks[next].lang == "text":
				if want := p.blocks[next].text; got != want {
					t.Errorf("%s: tocsin test does not print what %s says, but\n%s", b, p.blocks[next], got)
				}
			case code != 0:
				t.Errorf("%s:\n%s", b, got)
			}
		}
	}
	if passed == 0 || failed == 0 {
		t.Errorf("%d blocks of tests pass and %d fail; want one to copy, and one that shows what a failure looks like", passed, failed)
	}
}

// tested runs `tocsin test` on a folder, from where it is.
func tested(t *testing.T, dir, folder string) (code int, said string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(dir); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Chdir(here); err != nil {
			t.Fatal(err)
		}
	}()
	var out bytes.Buffer
	code = cli.Execute(context.Background(), cli.Env{Stdout: &out, Stderr: &out, Respond: rehearse.New}, []string{"test", folder})
	return code, out.String()
}
