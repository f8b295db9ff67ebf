package app

import (
	"strings"
	"testing"
	"time"
)

func TestConfigDefaults(t *testing.T) {
	c := config(t, minimal)
	if c.HTTP.Listen != "127.0.0.1:9460" || c.Kafka.Group != "tocsin" || c.Detect.Hold.Std() != 2*time.Minute || c.SelfPage.After.Std() != 30*time.Second {
		t.Errorf("defaults: %+v %+v %+v %+v", c.HTTP, c.Kafka, c.Detect, c.SelfPage)
	}
}

func TestEveryMistakeOfTheConfigurationHasItsPlace(t *testing.T) {
	_, err := ParseConfig("tocsin.yaml", []byte(`log: {level: loud}
http:
  listen: here
kafka:
  brokers: [nowhere]
  gruop: x
ingest: {max_rows: 5}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	if want := `tocsin.yaml:6:3: unknown field "gruop"`; !strings.Contains(err.Error(), want) {
		t.Errorf("missing %q in:\n%v", want, err)
	}
	_, err = ParseConfig("tocsin.yaml", []byte(`log: {level: loud}
http:
  listen: here
kafka:
  brokers: [nowhere]
ingest: {max_rows: 5}
`))
	for _, want := range []string{"tocsin.yaml:1:6: log: level", "tocsin.yaml:3:3: http: listen", "tocsin.yaml:5:3: brokers", "tocsin.yaml:6:20: max_rows"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

func TestShippedFilesAreGood(t *testing.T) {
	lines, err := CheckConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if lines[len(lines)-1] != "all files are good" {
		t.Errorf("%q", lines)
	}
}

func TestTheCauseOfAFailedStartIsPlain(t *testing.T) {
	a := New(Options{Config: config(t, minimal+"files: {rules: nowhere}\n")})
	err := plain(a.Err())
	if err == nil || strings.Contains(err.Error(), "could not build") {
		t.Errorf("%v", err)
	}
}
