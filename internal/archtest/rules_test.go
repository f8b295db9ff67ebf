package archtest

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/tocsin-project/tocsin"

// pkg is what the rules look at; paths are relative to the module.
type pkg struct {
	path    string
	files   []file
	leaking bool // it starts goroutines and no test of it looks for leaks
}

type file struct {
	name      string
	lines     int
	test      bool
	generated bool
	imports   []string // full import paths
}

func matches(pattern, path string) bool {
	base, deep := strings.CutSuffix(pattern, "/...")
	return path == base || deep && strings.HasPrefix(path, base+"/")
}

// rowOf is the most exact row: the longest pattern, and of equals the one without dots.
func rowOf(path string) (row, bool) {
	best, found := row{}, false
	rank := func(p string) int {
		base, deep := strings.CutSuffix(p, "/...")
		if deep {
			return 2 * len(base)
		}
		return 2*len(base) + 1
	}
	for _, r := range table {
		if matches(r.pattern, path) && (!found || rank(r.pattern) > rank(best.pattern)) {
			best, found = r, true
		}
	}
	return best, found
}

func supportsTests(path string) bool {
	return strings.HasSuffix(path, "test") && !slices.Contains(namedTest, path)
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// check gives one line for each departure from the table.
func check(packages []pkg) []string {
	var out []string
	for _, p := range packages {
		r, known := rowOf(p.path)
		if !known && !supportsTests(p.path) {
			out = append(out, fmt.Sprintf("%s has no row: add it to its tier in internal/archtest/table_test.go", p.path))
			continue
		}
		if p.leaking && unchecked[p.path] == "" && !supportsTests(p.path) {
			out = append(out, fmt.Sprintf("%s starts goroutines: give its tests a TestMain with goleak.VerifyTestMain", p.path))
		}
		for _, f := range p.files {
			name := p.path + "/" + f.name
			if f.lines > maxLines && !f.test && !f.generated && longFiles[name] == "" {
				out = append(out, fmt.Sprintf("%s has %d lines, %d at most: is it one room, or several?", name, f.lines, maxLines))
			}
			if f.test || supportsTests(p.path) {
				continue
			}
			for _, imported := range f.imports {
				if why := refused(p.path, r, imported); why != "" {
					out = append(out, fmt.Sprintf("%s imports %s: %s", name, strings.TrimPrefix(imported, module+"/"), why))
				}
			}
		}
	}
	return out
}

// refused says why the package from must not import a path, or "".
func refused(from string, r row, imported string) string {
	target, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		for mod, users := range modules {
			if (imported == mod || strings.HasPrefix(imported, mod+"/")) && !anyMatches(users, from) {
				return "only " + strings.Join(users, ", ") + " may"
			}
		}
		return ""
	}
	if supportsTests(target) {
		return "it supports tests, and this is no test"
	}
	t, known := rowOf(target)
	switch {
	case !known:
		return "" // its own missing row is reported
	case r.pattern == t.pattern, anyMatches(r.also, target):
		return ""
	case t.tier > r.tier:
		return fmt.Sprintf("%s is a higher tier than %s", tierNames[t.tier], tierNames[r.tier])
	case t.tier == adapter && r.tier < wiring, t.tier == adapter && r.tier == command:
		return "only app imports adapters; state an interface and let app fill it"
	case t.tier == r.tier && r.tier == loop && !related(from, target):
		return "loops never import each other; they meet in Kafka and ClickHouse"
	case t.tier == r.tier && !related(from, target):
		return fmt.Sprintf("both are of tier %s; where that is meant, the table's row says so", tierNames[r.tier])
	}
	return ""
}

// related packages are one inside the other: a loop and its stages, a command and its parts.
func related(a, b string) bool { return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/") }
