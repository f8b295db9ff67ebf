package docstest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/app"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/pipelines"
)

type compose struct {
	Services map[string]struct {
		Image string
		Build struct{ Context, Dockerfile string }
		Ports []string
		// Volumes are names or folders, with where they appear.
		Volumes     []string
		Healthcheck struct{ Test []string }
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		Environment map[string]string
		Restart     string
		Command     any
	}
	Volumes map[string]any
}

var pinned = regexp.MustCompile(`^[a-z0-9./-]+:\d+\.\d+\.\d+[a-z0-9.-]*$`)

// There is no Docker where the tests run, so this is what can be said without: the file is well-formed, and keeps the
// promises that the documentation makes of it.
func TestComposeFile(t *testing.T) {
	top := root(t)
	data, err := os.ReadFile(filepath.Join(top, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kafka", "clickhouse", "tocsin"} {
		if _, ok := c.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	for name, s := range c.Services {
		if s.Image != "" && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %q has no exact version", name, s.Image)
		}
		if s.Image == "" {
			dockerfile(t, top, s.Build.Dockerfile)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %q is open to the network", name, p)
			}
		}
		if s.Restart == "no" {
			continue // runs once
		}
		if len(s.Healthcheck.Test) < 2 || s.Healthcheck.Test[0] != "CMD" {
			t.Errorf("%s has no health check", name)
		} else if s.Healthcheck.Test[1] == "/usr/local/bin/tocsin" {
			if out, ok := understood(s.Healthcheck.Test[2:]); !ok {
				t.Errorf("%s: health check: %s", name, out)
			}
		}
		for other, on := range s.DependsOn {
			want := "service_healthy"
			if c.Services[other].Restart == "no" {
				want = "service_completed_successfully"
			}
			if on.Condition != want {
				t.Errorf("%s waits for %s to be %q, want %q", name, other, on.Condition, want)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, ".") {
				if _, err := os.Stat(filepath.Join(top, from)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else if _, ok := c.Volumes[from]; !ok {
				t.Errorf("%s: volume %q is not declared", name, from)
			}
		}
	}
}

// A topic that the shipped pipelines read and nobody has made would be an error in the log of a first start.
func TestComposeMakesTheTopics(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root(t), "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	set, err := pipeline.Load(pipelines.FS)
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprint(c.Services["topics"].Command)
	_, made, _ := strings.Cut(script, "for topic in ")
	made, _, _ = strings.Cut(made, ";")
	if got := strings.Fields(made); !slices.Equal(slices.Sorted(slices.Values(got)), set.Topics()) {
		t.Errorf("docker-compose.yml makes the topics %v, the pipelines read %v", got, set.Topics())
	}
}

// Tocsin starts in the container with the files that are mounted where it looks for them.
func TestComposeConfiguration(t *testing.T) {
	top := root(t)
	data, err := os.ReadFile(filepath.Join(top, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	etc := t.TempDir()
	for _, v := range c.Services["tocsin"].Volumes {
		from, to, _ := strings.Cut(strings.TrimSuffix(v, ":ro"), ":")
		if name, ok := strings.CutPrefix(to, "/etc/tocsin/"); ok {
			content, err := os.ReadFile(filepath.Join(top, from))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(etc, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(etc, "tocsin.yaml")
	if said, err := app.CheckConfig(file); err != nil {
		t.Error(err)
	} else if text := strings.Join(said, "\n"); strings.Contains(text, "catalogue: 0") {
		t.Errorf("the catalogue is not found: %s", text)
	}
	conf, err := app.LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := c.Services["kafka"].Environment["KAFKA_ADVERTISED_LISTENERS"]; !strings.Contains(want, "INTERNAL://"+conf.Kafka.Brokers[0]+",") {
		t.Errorf("Tocsin asks %s for Kafka, which tells its clients %s", conf.Kafka.Brokers[0], want)
	}
	if conf.ClickHouse.Addresses[0] != "clickhouse:8123" || conf.Respond.DataDir != "/var/lib/tocsin" || !strings.HasSuffix(conf.HTTP.Listen, ":9460") {
		t.Errorf("the configuration and docker-compose.yml disagree: %+v", conf)
	}
}

// dockerfile holds a Dockerfile to pinned bases and to copying what is there.
func dockerfile(t *testing.T, top, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "FROM":
			if words[1] != "scratch" && !pinned.MatchString(words[1]) {
				t.Errorf("%s: base %q has no exact version", name, words[1])
			}
		case len(words) > 2 && words[0] == "COPY" && !strings.HasPrefix(words[1], "--"):
			for _, from := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join(top, from)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}
