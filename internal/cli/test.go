package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/pipelines"
	"github.com/tocsin-project/tocsin/rules"
)

func testCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "test [FOLDER...]", Short: "Run the tests that stand beside rules and pipelines (*_test.yaml)",
		Long: "Runs every *_test.yaml in and below the folders: beside pipelines they test mappings (record in, events out), anywhere else\n" +
			"rules and routes (events in, findings, incidents and messages out; nothing is sent). Without a folder it runs the tests of what Tocsin ships with.",
		RunE: func(_ *cobra.Command, folders []string) error {
			results, err := runTests(env, folders)
			if err != nil {
				return err
			}
			failed := 0
			for _, r := range results {
				if r.diff == "" {
					fmt.Fprintf(env.Stdout, "ok    %s: %s\n", r.file, r.name)
					continue
				}
				failed++
				fmt.Fprintf(env.Stdout, "FAIL  %s: %s\n      %s\n", r.file, r.name, strings.ReplaceAll(strings.TrimSpace(r.diff), "\n", "\n      "))
			}
			fmt.Fprintf(env.Stdout, "%d passed, %d failed\n", len(results)-failed, failed)
			if len(results) == 0 {
				return fmt.Errorf("no *_test.yaml is in %s", strings.Join(folders, ", "))
			}
			if failed > 0 {
				return errSilent
			}
			return nil
		},
	}
}

// testResult is one test of a *_test.yaml file; diff is empty where it passed.
type testResult struct{ file, name, diff string }

func runTests(env Env, folders []string) ([]testResult, error) {
	if len(folders) == 0 {
		out := ruleTests(env, rules.FS)
		more, err := pipelineTests(pipelines.FS)
		return append(out, more...), err
	}
	var out []testResult
	for _, f := range folders {
		if st, err := os.Stat(f); err != nil {
			return nil, err
		} else if !st.IsDir() {
			return nil, usageError{fmt.Errorf("%s is no folder", f)}
		}
		found, err := folderTests(env, os.DirFS(f))
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			r.file = path.Join(filepath.ToSlash(f), r.file)
			out = append(out, r)
		}
	}
	return out, nil
}

// folderTests runs what stands anywhere below a folder: each folder in it has tests of its own kind.
func folderTests(env Env, fsys fs.FS) (out []testResult, err error) {
	pipelines := map[string]bool{}
	err = fs.WalkDir(fsys, ".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		sub, err := fs.Sub(fsys, dir)
		if err != nil || !holdsPipelines(sub) {
			return err
		}
		pipelines[dir] = true
		results, err := pipelineTests(sub)
		for _, r := range results {
			r.file = path.Join(dir, r.file)
			out = append(out, r)
		}
		if err != nil { // the tests elsewhere can still be run
			out = append(out, testResult{dir, "its tests can't all be run", err.Error()})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range ruleTests(env, fsys) {
		if !pipelines[path.Dir(r.file)] {
			out = append(out, r)
		}
	}
	return out, nil
}

func ruleTests(env Env, fsys fs.FS) (out []testResult) {
	for _, r := range ruletest.RunWith(fsys, ".", ruletest.Options{Respond: env.Respond}) {
		out = append(out, testResult{r.File, r.Test, r.Diff})
	}
	return out
}

func pipelineTests(fsys fs.FS) (out []testResult, err error) {
	results, err := decode.RunTests(fsys)
	for _, r := range results {
		out = append(out, testResult{r.Pos.File, strings.TrimPrefix(r.Name, r.Pos.File+": "), r.Diff})
	}
	return out, err
}

// holdsPipelines tells a folder of pipelines by its files: each of them names a decoder, and no other file does.
func holdsPipelines(fsys fs.FS) bool {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return false
	}
	for _, n := range names {
		data, err := fs.ReadFile(fsys, n)
		if err == nil && (bytes.HasPrefix(data, []byte("decoder:")) || bytes.Contains(data, []byte("\ndecoder:"))) {
			return true
		}
	}
	return false
}
