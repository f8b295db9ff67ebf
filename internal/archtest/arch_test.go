package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTreeKeepsToTheTable(t *testing.T) {
	packages := load(t)
	if len(packages) < 5 {
		t.Fatalf("found %d packages only", len(packages))
	}
	for _, line := range check(packages) {
		t.Error(line)
	}
}

// Each rule must be able to fail.
func TestRulesRefuse(t *testing.T) {
	one := func(from, imported string) []pkg {
		return []pkg{{path: from, files: []file{{name: "x.go", imports: []string{imported}}}}}
	}
	ours := func(from, to string) []pkg { return one(from, module+"/"+to) }
	tests := map[string]struct {
		packages []pkg
		want     string // "" where nothing is wrong
	}{
		"upwards":                   {ours("internal/signal", "internal/rule"), "model is a higher tier than leaf"},
		"loop to loop":              {ours("internal/detect/evidence", "internal/ingest"), "loops never import each other"},
		"loop to its stage":         {ours("internal/detect", "internal/detect/evidence"), ""},
		"stage to stage":            {ours("internal/detect/suspect", "internal/detect/localise"), ""},
		"loop to its adapter":       {ours("internal/respond", "internal/respond/slack"), "adapter is a higher tier than loop"},
		"loop to its route":         {ours("internal/respond", "internal/respond/route"), ""},
		"receiver to the loop":      {ours("internal/respond/slack", "internal/respond"), ""},
		"receiver to receiver":      {ours("internal/respond/slack", "internal/kafka"), "only app imports adapters"},
		"tool to adapter":           {ours("internal/console", "internal/clickhouse"), "only app imports adapters"},
		"command to adapter":        {ours("cmd/tocsin", "internal/kafka"), "only app imports adapters"},
		"app to adapter":            {ours("internal/app", "internal/respond/slack"), ""},
		"demo to the local broker":  {ours("internal/demo", "internal/kafkalocal"), ""},
		"leaf to leaf as said":      {ours("internal/incident", "internal/signal"), ""},
		"leaf to leaf":              {ours("internal/signal", "internal/incident"), "both are of tier leaf"},
		"code to test support":      {ours("internal/app", "internal/chlocal/chlocaltest"), "it supports tests"},
		"test support to anything":  {ours("internal/kafkalocal/kafkatest", "internal/app"), ""},
		"fx outside app":            {one("internal/detect", "go.uber.org/fx/fxevent"), "only internal/app/..."},
		"fx in app":                 {one("internal/app", "go.uber.org/fx"), ""},
		"a library of all":          {one("internal/signal", "golang.org/x/sync/errgroup"), ""},
		"no row":                    {[]pkg{{path: "internal/misc"}}, "has no row"},
		"goroutines without checks": {[]pkg{{path: "internal/detect", leaking: true}}, "goleak.VerifyTestMain"},
		"a long file":               {[]pkg{{path: "internal/detect", files: []file{{name: "x.go", lines: 401}}}}, "401 lines"},
		"a long test":               {[]pkg{{path: "internal/detect", files: []file{{name: "x_test.go", lines: 401, test: true}}}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(check(tt.packages), "\n")
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestGoroutinesAreSeen(t *testing.T) {
	for source, want := range map[string]bool{
		"package x\nfunc f() { go f() }":                                    true,
		"package x\nfunc f(g interface{ Go(func()) }) { g.Go(func() {}) }":  true,
		"package x\n// go f() in a comment\nfunc f() { println(`go f()`) }": false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := startsGoroutines(f); got != want {
			t.Errorf("%q: %v", source, got)
		}
	}
}

// load reads all Go files of the module, whatever their build tags.
func load(t *testing.T) []pkg {
	t.Helper()
	root := "../.."
	byPath := map[string]*pkg{}
	starts, checks := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != root && (base == "testdata" || base == "node_modules" || base == "bin" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(rel))
		if byPath[dir] == nil {
			byPath[dir] = &pkg{path: dir}
		}
		f := file{name: base, lines: bytes.Count(text, []byte("\n")), test: strings.HasSuffix(base, "_test.go"), generated: ast.IsGenerated(parsed)}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		if f.test {
			checks[dir] = checks[dir] || looksForLeaks(text)
		} else {
			starts[dir] = starts[dir] || startsGoroutines(parsed)
		}
		byPath[dir].files = append(byPath[dir].files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []pkg
	for _, p := range byPath {
		p.leaking = starts[p.path] && !checks[p.path]
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b pkg) int { return strings.Compare(a.path, b.path) })
	return out
}

func looksForLeaks(test []byte) bool {
	return slices.ContainsFunc([]string{"goleak.VerifyTestMain(", "goleak.Find(", "chlocaltest.Main("}, func(s string) bool {
		return bytes.Contains(test, []byte(s))
	})
}

// startsGoroutines sees go statements and the Go methods of errgroup and sync.WaitGroup.
func startsGoroutines(f *ast.File) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" && len(n.Args) == 1 {
				found = true
			}
		}
		return !found
	})
	return found
}
