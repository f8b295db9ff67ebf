package app

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/respond"
)

// folder writes files and returns the path of the first.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, files[0])
}

// A mistyped folder is no installation without rules, and the place of a mistake is one that an editor opens.
func TestFoldersThatHoldNothingAreMistakes(t *testing.T) {
	for _, v := range []struct{ text, want string }{
		{"files: {pipelines: none}\n", "none: no such file or directory"},
		{"files: {pipelines: hollow}\n", "hollow holds no pipeline"},
		{"files: {rules: none}\n", "none: no such file or directory"},
		{"files: {rules: hollow}\n", "hollow holds no rule"},
		{"files: {pipelines: bad}\n", "DIR/bad/x.yaml:3:9: unknown stream"},
		{"files: {rules: bad/rules}\n", "DIR/bad/rules/y.yaml:"},
	} {
		file := folder(t, "tocsin.yaml", minimal+v.text, "hollow/README", "", "bad/x.yaml", "name: x\ntopic: t\nstream: wat\ndecoder: json\n", "bad/rules/y.yaml", "groups: 5\n")
		_, err := CheckConfig(file)
		if want := strings.ReplaceAll(v.want, "DIR", filepath.Dir(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", v.text, err, want)
		}
	}
}

func TestCheckSaysThatSecretsAreMissing(t *testing.T) {
	lines, err := CheckConfig(folder(t, "tocsin.yaml", minimal))
	last := ""
	if len(lines) > 0 {
		last = lines[len(lines)-1]
	}
	if err != nil || !strings.Contains(last, "the daemon would not start here") || !strings.Contains(last, "secrets/pagerduty_routing_key: no such file") {
		t.Errorf("%q, %v", last, err)
	}
	lines, err = CheckConfig(folder(t, "tocsin.yaml", minimal, "secrets/pagerduty_routing_key", strings.Repeat("a", 32), "secrets/slack_token", "xoxb-1"))
	if err != nil || lines[len(lines)-1] != "all files are good" {
		t.Errorf("with secrets: %q, %v", lines, err)
	}
}

// Whoever starts a daemon whose database is down looks into its log.
func TestWhatIsDownIsInTheLog(t *testing.T) {
	var b bytes.Buffer
	c := complaint{logger: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), what: "Kafka"}
	now, refused := time.Now(), errors.New("refused")
	c.look(nil, now)
	for i := range 90 {
		c.look(refused, now.Add(time.Duration(i)*time.Second))
	}
	c.look(nil, now.Add(90*time.Second))
	c.look(nil, now.Add(91*time.Second))
	want := `level=WARN msg="Kafka does not answer, trying on" err=refused
level=WARN msg="Kafka still does not answer, trying on" for=1m0s err=refused
level=INFO msg="Kafka answers again" after=1m30s
`
	if b.String() != want {
		t.Errorf("the log has\n%s, want\n%s", b.String(), want)
	}
}

func TestADeliveryHasTheTimeOfWhatWasSaidLast(t *testing.T) {
	opened := time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC)
	r := respond.Record{CreatedAt: opened, EditedAt: opened.Add(time.Minute), Want: respond.Said{Status: respond.Closed}, Got: respond.Said{Status: respond.Closed}}
	if d := delivery(&r); !d.At.Equal(opened.Add(time.Minute)) {
		t.Errorf("%v", d.At)
	}
	r.ClosedAt = opened.Add(time.Hour)
	if d := delivery(&r); !d.At.Equal(r.ClosedAt) || d.Action != "closed" {
		t.Errorf("%+v", d)
	}
}
