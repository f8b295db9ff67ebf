package strictyaml_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestSecretIsNeverShown(t *testing.T) {
	type holder struct {
		Token strictyaml.Secret            `json:"token" yaml:"token"`
		By    map[string]strictyaml.Secret `json:"by" yaml:"by"`
	}
	h := holder{Token: "hunter2", By: map[string]strictyaml.Secret{"x": "hunter2"}}
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		fmt.Fprintf(&shown, verb+" "+verb+" "+verb+"\n", h, &h, h.Token)
	}
	if err := json.NewEncoder(&shown).Encode(h); err != nil {
		t.Fatal(err)
	}
	if out, err := yaml.Marshal(holder{Token: h.Token}); err != nil || !strings.Contains(string(out), "<secret>") {
		t.Errorf("YAML: %s, %v", out, err)
	}
	var logs bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&logs, nil), slog.NewJSONHandler(&logs, nil)} {
		slog.New(handler).Info("x", "secret", h.Token, "holder", h, "pointer", &h)
	}
	shown.WriteString(logs.String())
	for _, spelling := range []string{"hunter2", "68756e74657232", "0x68"} {
		if strings.Contains(shown.String(), spelling) {
			t.Errorf("shown as %s in:\n%s", spelling, shown.String())
		}
	}
	if h.Token.Reveal() != "hunter2" {
		t.Error("Reveal does not give the text")
	}
	if got := strictyaml.Secret("").String(); got != "" {
		t.Errorf("an unset secret looks set: %q", got)
	}
}

func TestResolveSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := map[string]string{"a\n": "a", "a": "a", "a\n\n": "a\n", "a\r\n": "a", " a b ": " a b "}
	for content, want := range good {
		if got, err := strictyaml.ResolveSecret("", write("good", content)); err != nil || got.Reveal() != want {
			t.Errorf("%q: got %q, %v", content, got.Reveal(), err)
		}
	}
	if got, err := strictyaml.ResolveSecret("inline", ""); err != nil || got != "inline" {
		t.Errorf("inline: %v, %v", got.Reveal(), err)
	}
	if got, err := strictyaml.ResolveSecret("", ""); err != nil || got != "" {
		t.Errorf("none: %v, %v", got.Reveal(), err)
	}
	if _, err := strictyaml.ResolveSecret("", filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	bad := map[string]struct{ inline, content, want string }{
		"both":  {"hunter2", "hunter2", "also given inline"},
		"empty": {"", "\n", "it is empty"},
		"long":  {"", strings.Repeat("hunter2", 10000), "longer than"},
	}
	for name, tt := range bad {
		_, err := strictyaml.ResolveSecret(strictyaml.Secret(tt.inline), write(name, tt.content))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s shows the secret: %v", name, err)
		}
	}
}
