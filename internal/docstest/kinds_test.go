package docstest

import (
	"encoding"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
	"github.com/tocsin-project/tocsin/rules"
)

// What a key means where the source leaves it to the package's reader. The comment in the source comes first.
var meaning = map[string]string{
	"above":                   "the share above which it is abnormal",
	"window":                  "how far back it looks, a multiple of 10 s, 1 h at most",
	"min_requests":            "fewer requests in the window prove nothing",
	"times_usual":             "also at least this many times what is usual; 0 does not ask",
	"match":                   "globs that select, see [Selecting](#selecting)",
	"slower_than":             "how long a request may take",
	"min_accounts":            "tickets of fewer accounts prove nothing",
	"high_impact/declare":     "points that declare an incident",
	"high_impact/critical":    "points that make it critical",
	"saturation/above":        "value/limit above which it is abnormal; give this, `exhausted_in` or both",
	"saturation/exhausted_in": "how soon the limit will be reached by the trend",
	"saturation/trend_over":   "how far back the trend looks, a multiple of 10 s, 1 h at most",
}

// comments reads the comments on the fields of all structs of a package.
func comments(t *testing.T, dir string) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", dir, err, len(files))
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			fields := map[string]string{}
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					fields[name.Name] = strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
				}
			}
			out[spec.Name.Name] = fields
			return true
		})
	}
	return out
}

// reference writes the section on kinds from the code.
func reference(t *testing.T) string {
	t.Helper()
	said := comments(t, filepath.Join(root(t), "internal", "rule"))
	var b strings.Builder
	for _, k := range rule.Kinds {
		f, err := rule.Parse(k.Name, []byte(wrap(k.Example)))
		if err != nil {
			t.Fatalf("example of %s: %v", k.Name, err)
		}
		typ := reflect.TypeOf(f.Groups[0].Rules[0].Params).Elem()
		defaults := reflect.New(typ)
		if d, ok := defaults.Interface().(interface{ SetDefaults() }); ok {
			d.SetDefaults()
		}
		fmt.Fprintf(&b, "### %s\n\nAbnormal when %s.\n\n| key | default | meaning |\n|---|---|---|\n", k.Name, k.Summary)
		for i := range typ.NumField() {
			field := typ.Field(i)
			key := field.Tag.Get("yaml")
			if key == "" || key == "-" {
				continue
			}
			text := said[typ.Name()][field.Name]
			for _, name := range []string{key, k.Name + "/" + key} {
				if m, ok := meaning[name]; ok && (text == "" || strings.Contains(name, "/")) {
					text = m
				}
			}
			if text == "" {
				t.Errorf("%s: nothing says what %q means: comment it in internal/rule/kinds.go", k.Name, key)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, shown(defaults.Elem().Field(i), field.Tag.Get("strict") == "required"), text)
		}
		fmt.Fprintf(&b, "\n```yaml rules\n%s```\n\n", wrap(k.Example))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// wrap puts a rule into a file.
func wrap(example string) string {
	return "groups:\n- name: example\n  rules:\n  - " + strings.ReplaceAll(strings.TrimRight(example, "\n"), "\n", "\n    ") + "\n"
}

func shown(v reflect.Value, required bool) string {
	switch {
	case required:
		return "required"
	case v.IsZero():
		return "–"
	}
	if d, ok := v.Interface().(strictyaml.Duration); ok {
		return "`" + d.String() + "`"
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return "`" + string(text) + "`"
		}
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

func TestReferenceOfKindsIsWhatTheCodeSays(t *testing.T) {
	generated(t, "docs/rules.md", "kinds", "\n"+reference(t)+"\n")
}

// Whoever is woken follows the link in the page.
func TestRunbooksOfShippedRulesAreThere(t *testing.T) {
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, p := range pages(t) {
		for _, h := range heading.FindAllStringSubmatch(p.prose, -1) {
			anchors[p.file+"#"+anchor(h[1])] = true
		}
	}
	for _, r := range set.Rules() {
		_, target, ours := strings.Cut(r.Annotations["runbook_url"].Value, "/blob/main/")
		if !ours || !anchors[target] {
			t.Errorf("%s: the runbook %q is not there", r.Alert, r.Annotations["runbook_url"].Value)
		}
	}
}
