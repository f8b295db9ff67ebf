// Package calibrate proposes other numbers for rules: objectives, budgets, windows and floors, each tried on the past. It
// edits rule files as text, so that comments and layout stay, and decides by outcomes that are handed to it; it replays nothing
// itself.
package calibrate

import (
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/rule"
)

// maxBlips is what a rule may have at most, in minutes.
const maxBlips = int(rule.MaxBlips / time.Minute)

// Setting is one number of one rule, and where it stands.
type Setting struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Rule  string `json:"rule"`
	Field string `json:"field"`
	Value string `json:"value"`

	column int
}

// fields are what is calibrated, with what each could be instead.
var fields = map[string]func(string) []string{
	"above": shares, "objective": objectives, "false_pages": budgets, "window": windows, "min_failures": numbers, "min_excess": numbers,
	"blips": blips,
}

// Read finds the settings of all rules in a folder, in order of file and line, and gives the files.
func Read(fsys fs.FS) (out []Setting, files map[string][]byte, err error) {
	files = map[string][]byte{}
	err = fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		files[name] = data
		if strings.HasSuffix(name, "_test.yaml") || strings.HasSuffix(name, "_test.yml") {
			return nil
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(doc.Content) > 0 {
			out = append(out, settingsOf(name, doc.Content[0])...)
		}
		return nil
	})
	return out, files, err
}

func settingsOf(file string, top *yaml.Node) (out []Setting) {
	for _, group := range items(child(top, "groups")) {
		for _, r := range items(child(group, "rules")) {
			name := child(r, "alert")
			if name == nil {
				continue
			}
			for i := 0; i+1 < len(r.Content); i += 2 {
				k, v := r.Content[i], r.Content[i+1]
				if fields[k.Value] != nil && v.Kind == yaml.ScalarNode && v.Style == 0 {
					out = append(out, Setting{File: file, Line: v.Line, Rule: name.Value, Field: k.Value, Value: v.Value, column: v.Column})
				}
			}
		}
	}
	return out
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// Candidates are the values to try instead, none where the value is written in a way that is not understood.
func (s *Setting) Candidates() []string {
	return slices.DeleteFunc(fields[s.Field](s.Value), func(v string) bool { return v == s.Value })
}

// Edit gives the file with another value in the setting's place, and all else as it was.
func (s *Setting) Edit(data []byte, value string) ([]byte, error) {
	lines := strings.SplitAfter(string(data), "\n")
	if s.Line < 1 || s.Line > len(lines) || len(lines[s.Line-1]) < s.column-1 || !strings.HasPrefix(lines[s.Line-1][s.column-1:], s.Value) {
		return nil, fmt.Errorf("%s:%d: %s of %s is not where it was", s.File, s.Line, s.Field, s.Rule)
	}
	l := lines[s.Line-1]
	lines[s.Line-1] = l[:s.column-1] + value + l[s.column-1+len(s.Value):]
	return []byte(strings.Join(lines, "")), nil
}

var (
	share    = regexp.MustCompile(`^([0-9.]+)%$`)
	budget   = regexp.MustCompile(`^([0-9.]+) per ([0-9]+)d$`)
	duration = regexp.MustCompile(`^([0-9]+)(s|m|h)$`)
)

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func shares(v string) (out []string) {
	m := share.FindStringSubmatch(v)
	if m == nil {
		return nil
	}
	x, _ := strconv.ParseFloat(m[1], 64)
	for _, k := range []float64{0.5, 1.5, 2} {
		if y := x * k; y > 0 && y < 100 {
			out = append(out, short(y)+"%")
		}
	}
	return out
}

// objectives halve and double what may fail.
func objectives(v string) (out []string) {
	m := share.FindStringSubmatch(v)
	if m == nil {
		return nil
	}
	x, _ := strconv.ParseFloat(m[1], 64)
	for _, k := range []float64{0.5, 2} {
		if bad := (100 - x) * k; bad > 0 && bad < 50 {
			out = append(out, short(math.Round((100-bad)*1e6)/1e6)+"%")
		}
	}
	return out
}

func budgets(v string) (out []string) {
	m := budget.FindStringSubmatch(v)
	if m == nil {
		return nil
	}
	d, _ := strconv.ParseFloat(m[2], 64)
	for _, k := range []float64{1.0 / 3, 3} {
		if y := math.Round(d * k); y >= 1 && y <= 365 {
			out = append(out, fmt.Sprintf("%s per %.0fd", m[1], y))
		}
	}
	return out
}

var units = map[string]float64{"s": 1, "m": 60, "h": 3600}

func windows(v string) (out []string) {
	m := duration.FindStringSubmatch(v)
	if m == nil {
		return nil
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	for _, k := range []float64{0.5, 2} {
		s := math.Round(n*units[m[2]]*k/10) * 10
		switch {
		case s < 10 || s > 3600:
		case math.Mod(s, 60) == 0:
			out = append(out, fmt.Sprintf("%.0fm", s/60))
		default:
			out = append(out, fmt.Sprintf("%.0fs", s))
		}
	}
	return out
}

// blips are a minute shorter or longer, which costs as much delay, and twice as long.
func blips(v string) (out []string) {
	m := duration.FindStringSubmatch(v)
	if len(m) < 3 || m[2] != "m" {
		return nil
	}
	n, _ := strconv.Atoi(m[1])
	for _, y := range []int{n - 1, n + 1, n * 2} {
		if y >= 1 && y <= maxBlips {
			out = append(out, strconv.Itoa(y)+"m")
		}
	}
	return slices.Compact(out)
}

func numbers(v string) (out []string) {
	n, err := strconv.Atoi(v)
	if err != nil {
		return nil
	}
	for _, y := range []int{(n + 1) / 2, n * 2} {
		if y > 0 {
			out = append(out, strconv.Itoa(y))
		}
	}
	return out
}
