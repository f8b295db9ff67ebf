package strictyaml_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestErrorsAreFoundByAs(t *testing.T) {
	err := fmt.Errorf("load: %w", strictyaml.Decode("f.yaml", []byte("zzz: 1"), &struct{}{}))
	var one *strictyaml.Error
	if !errors.As(err, &one) || one.Pos() != (strictyaml.Pos{File: "f.yaml", Line: 1, Col: 1}) {
		t.Errorf("no *Error in %v", err)
	}
}

func TestJoinListsAllFilesInOrder(t *testing.T) {
	at := func(file string, line int) strictyaml.Pos { return strictyaml.Pos{File: file, Line: line, Col: 1} }
	var a strictyaml.Errors
	a.Add(at("b.yaml", 9), errors.New("plain"))
	a.Add(at("b.yaml", 2), (&strictyaml.Error{Msg: "placeless"}).WithHint("do %s", "this"))
	a.Add(at("b.yaml", 2), nil)
	other := errors.Join(at("a.yaml", 1).Errorf("first"), at("a.yaml", 1).Errorf("first"), strictyaml.Errors{at("c.yaml", 1).Errorf("last")})
	want := "a.yaml:1:1: first\nb.yaml:2:1: placeless (do this)\nb.yaml:9:1: plain\nc.yaml:1:1: last"
	if diff := cmp.Diff(want, strictyaml.Join(a.Err(), nil, other).Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := strictyaml.Join(nil, strictyaml.Errors{}.Err()); err != nil {
		t.Errorf("nothing wrong, but %v", err)
	}
}

func TestExcerptPutsTheCaretUnderTheColumn(t *testing.T) {
	data := []byte("a: 1\r\n\tnäme: x\r\n")
	if got, want := (strictyaml.Pos{Line: 2, Col: 8}).Excerpt(data), "\tnäme: x\n\t      ^"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := (strictyaml.Pos{Line: 9, Col: 1}).Excerpt(data); got != "" {
		t.Errorf("a line beyond the end: %q", got)
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"group_by", "group_wait", "for", "labels", "keep_firing_for"}
	for word, want := range map[string]string{
		"groupBy": "group_by", "gorup_wait": "group_wait", "keep-firing-for": "keep_firing_for", "fro": "for", "label": "labels",
		"alert": "", "x": "", "annotations": "",
	} {
		if got := strictyaml.Suggest(word, known); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestPlacesAreNotPrinted(t *testing.T) {
	v := map[string]any{
		"name": strictyaml.Located[string]{Value: "db", Pos: strictyaml.Pos{File: "f", Line: 3, Col: 4}},
		"for":  strictyaml.Duration(90 * time.Minute),
	}
	out, err := json.Marshal(v)
	if want := `{"for":"1h30m","name":"db"}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}
