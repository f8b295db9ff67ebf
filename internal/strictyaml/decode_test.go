package strictyaml_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

var update = flag.Bool("update", false, "write the expected errors beside the bad files")

type level string

func (l *level) UnmarshalText(text []byte) (err error) {
	*l, err = strictyaml.Enum[level]("level", text, "critical", "warning", "info")
	return err
}

// step is decoded by its kind, as rules are.
type step struct {
	Kind  string
	Count *countStep
	Wait  *waitStep
}

type countStep struct {
	Kind string `yaml:"kind"`
	To   int8   `yaml:"to" strict:"required"`
}

type waitStep struct {
	Kind string              `yaml:"kind"`
	For  strictyaml.Duration `yaml:"for"`
	Pos  strictyaml.Pos      `yaml:"-"`
}

func (s *step) UnmarshalStrict(n *yaml.Node) error {
	var head struct {
		Kind string         `yaml:"kind" strict:"required"`
		Rest map[string]any `yaml:",inline"`
	}
	if err := strictyaml.DecodeNode(n, &head); err != nil {
		return err
	}
	switch s.Kind = head.Kind; head.Kind {
	case "count":
		return strictyaml.DecodeNode(n, &s.Count)
	case "wait":
		return strictyaml.DecodeNode(n, &s.Wait)
	}
	return errors.New("no such kind of step")
}

type common struct {
	Owner string `yaml:"owner"`
	Tier  int    `yaml:"tier"`
}

type server struct {
	Listen string        `yaml:"listen"`
	Linger time.Duration `yaml:"linger"`
}

func (s *server) SetDefaults() { s.Listen, s.Linger = "127.0.0.1:1", time.Minute }

type entry struct {
	common  `yaml:",inline"`
	Name    strictyaml.Located[string] `yaml:"name" strict:"required"`
	Depends []string                   `yaml:"depends_on"`
	Further map[string]any             `yaml:",inline"`
	Places  strictyaml.Positions       `yaml:"-"`
}

type config struct {
	Name      string              `yaml:"name" strict:"required"`
	Interval  strictyaml.Duration `yaml:"interval"`
	Level     level               `yaml:"level"`
	Share     float64             `yaml:"share"`
	Enabled   bool                `yaml:"enabled"`
	Limit     *uint16             `yaml:"limit"`
	Pair      [2]int              `yaml:"pair"`
	Labels    map[string]string   `yaml:"labels"`
	ByLevel   map[level]int       `yaml:"by_level"`
	Server    server              `yaml:"server"`
	Entries   []entry             `yaml:"entries"`
	Steps     []step              `yaml:"steps"`
	Since     time.Time           `yaml:"since"`
	Token     strictyaml.Secret   `yaml:"token"`
	Any       any                 `yaml:"any"`
	Raw       yaml.Node           `yaml:"raw"`
	Templates any                 `yaml:"templates"`
	Pos       strictyaml.Pos      `yaml:"-"`
}

func decodeFile(t *testing.T, path string) (config, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c config
	err = strictyaml.Decode(filepath.Base(path), data, &c)
	return c, err
}

func TestGoodFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.good.yaml")
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if _, err := decodeFile(t, path); err != nil {
				t.Errorf("refused:\n%v", err)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.bad.yaml")
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := decodeFile(t, path)
			if err == nil {
				t.Fatal("accepted")
			}
			golden := strings.TrimSuffix(path, ".yaml") + ".errors"
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("errors differ (-want +got), go test -update writes them:\n%s", diff)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is repeated:\n%s", got)
			}
		})
	}
}

func TestValuesAndPlaces(t *testing.T) {
	c, err := decodeFile(t, "testdata/all.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pos := func(line, col int) strictyaml.Pos { return strictyaml.Pos{File: "all.good.yaml", Line: line, Col: col} }
	limit := uint16(65535)
	want := config{
		Name: "1.10", Interval: strictyaml.Duration(90 * time.Minute), Level: "critical", Share: 0.25, Enabled: true,
		Limit: &limit, Pair: [2]int{1, 1000}, Labels: map[string]string{"code": "500", "team": "true", "on": "yes"},
		ByLevel: map[level]int{"info": 1}, Server: server{Listen: "127.0.0.1:1", Linger: 5 * time.Second},
		Since: time.Date(2026, 9, 30, 14, 0, 0, 0, time.UTC), Token: "hunter2",
		Any: map[string]any{"a": []any{int64(1), 2.5, true, nil, "x"}}, Pos: pos(2, 1),
	}
	got := c
	got.Raw, got.Steps, got.Entries, got.Templates = yaml.Node{}, nil, nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	e := c.Entries[1]
	if e.Owner != "core" || e.Tier != 2 || e.Name.Value != "git" || e.Name.Pos != pos(25, 11) {
		t.Errorf("entry with a merge: %+v", e)
	}
	if diff := cmp.Diff(map[string]any{"runbook": "https://example.org/git"}, e.Further); diff != "" {
		t.Errorf("further keys (-want +got):\n%s", diff)
	}
	if got := e.Places.Of("depends_on"); got != pos(27, 17) {
		t.Errorf("place of depends_on = %v", got)
	}
	if got := e.Places.Of("words"); got != pos(24, 5) {
		t.Errorf("place of a key that is left out = %v", got)
	}
	if s := c.Steps[1]; s.Wait == nil || s.Wait.For.Std() != time.Minute || s.Wait.Pos != pos(31, 5) {
		t.Errorf("a type of its own loses values or its file: %+v", s.Wait)
	}
	var raw struct {
		Pos strictyaml.Pos `yaml:"-"`
		X   int            `yaml:"x"`
	}
	if err := strictyaml.DecodeNode(&c.Raw, &raw); err != nil || raw.X != 7 || raw.Pos != pos(33, 6) {
		t.Errorf("a raw node decoded later: %+v, %v", raw, err)
	}
}

func TestKeepsValuesSetBefore(t *testing.T) {
	c := config{Share: 0.5, Labels: map[string]string{"old": "x"}, Interval: strictyaml.Duration(time.Second)}
	if err := strictyaml.Decode("c.yaml", []byte("name: n\nlabels: {new: y}\n"), &c); err != nil {
		t.Fatal(err)
	}
	if c.Share != 0.5 || c.Interval.Std() != time.Second {
		t.Errorf("defaults are lost: %+v", c)
	}
	if diff := cmp.Diff(map[string]string{"new": "y"}, c.Labels); diff != "" {
		t.Errorf("a map in the file is the whole map (-want +got):\n%s", diff)
	}
}

func TestEmptyDocument(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "---\n", "null\n"} {
		var free struct {
			X int `yaml:"x"`
		}
		if err := strictyaml.Decode("f", []byte(text), &free); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		var c config
		if err := strictyaml.Decode("f", []byte(text), &c); err == nil || !strings.Contains(err.Error(), `"name" is required`) {
			t.Errorf("%q: required fields are not asked for: %v", text, err)
		}
	}
}

func TestBounds(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		a, b := string(rune('0'+i)), string(rune('1'+i))
		bomb += "a" + b + ": &a" + b + " [" + strings.Repeat("*a"+a+", ", 9) + "*a" + a + "]\n"
	}
	tests := map[string]struct{ text, want string }{
		"expansion": {bomb, "nodes, aliases expanded"},
		"depth":     {strings.Repeat("[", 200) + strings.Repeat("]", 200), "nesting is deeper"},
		"depth through aliases": {
			"a: &a " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\nb: " + strings.Repeat("[", 60) + "*a" + strings.Repeat("]", 60),
			"nesting is deeper",
		},
		"own ancestor": {"a: &a [*a]", "contains itself"},
		"size":         {"# " + strings.Repeat("x", strictyaml.MaxBytes), "at most are read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var v any
			err := strictyaml.Decode("f", []byte(tt.text), &v)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReportIsBounded(t *testing.T) {
	err := strictyaml.Decode("f", []byte("pair: ["+strings.Repeat("x, ", 5000)+"]\nentries: ["+strings.Repeat("1, ", 5000)+"]"), &config{})
	if lines := strings.Count(err.Error(), "\n"); lines > 101 {
		t.Errorf("%d lines", lines)
	}
}

func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n"))
	f.Add([]byte("<<: &m {listen: ':1'}\nservers: [<<: *m]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		hang := time.AfterFunc(time.Minute, func() { panic("it hangs") })
		defer hang.Stop()
		var c, again config
		err := strictyaml.Decode("f.yaml", data, &c)
		if errAgain := strictyaml.Decode("f.yaml", data, &again); fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatalf("not the same again: %v, %v", err, errAgain)
		}
		var list strictyaml.Errors
		if err != nil && !errors.As(err, &list) {
			t.Fatalf("not a list of mistakes: %T %v", err, err)
		}
		for _, e := range list {
			if e.Line < 1 || e.Col < 1 || e.File != "f.yaml" || e.Msg == "" {
				t.Errorf("a mistake without a place: %#v", e)
			}
		}
	})
}
