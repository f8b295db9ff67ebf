package route

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var kinds = []Kind{
	{Key: "pager_configs", Name: "pager", Pages: true, Decode: func(*yaml.Node) (any, error) { return nil, nil }},
	{Key: "chat_configs", Name: "chat", Decode: func(*yaml.Node) (any, error) { return nil, nil }},
}

func TestMatchers(t *testing.T) {
	labels := map[string]string{"severity": "critical", "service": "auth", "service.name": "a b"}
	for text, want := range map[string]bool{
		`severity="critical"`:                      true,
		`severity=critical`:                        true,
		`severity = "major"`:                       false,
		`severity!="major"`:                        true,
		`severity=~"crit.*|major"`:                 true,
		`severity=~"crit"`:                         false, // anchored
		`severity!~"m.*"`:                          true,
		`team=""`:                                  true, // absent is empty
		`team!="db"`:                               true,
		`{severity="critical", service=~"auth|x"}`: true,
		`severity="critical",service="web"`:        false,
		`"service.name"="a b",`:                    true,
		`service="a,b"`:                            false,
	} {
		ms, err := ParseMatchers(text)
		if err != nil || ms.Match(labels) != want {
			t.Errorf("%s: %v, %v; want %v", text, ms.Match(labels), err, want)
		}
		for _, m := range ms { // what is printed can be read again
			if again, err := ParseMatchers(m.String()); err != nil || again[0].String() != m.String() {
				t.Errorf("%s prints as %s, which reads as %v, %v", text, m, again, err)
			}
		}
	}
	for _, text := range []string{``, `severity`, `="x"`, `a="b" c="d"`, `a=~"("`, `a="b`, `{a="b"`, `a=="b" "`} {
		if ms, err := ParseMatchers(text); err == nil {
			t.Errorf("%q was read as %v", text, ms)
		}
	}
}

func FuzzMatchers(f *testing.F) {
	f.Add(`{a="b\"", "c.d"=~"e|f",}`)
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := ParseMatchers(text)
		if err != nil {
			return
		}
		ms.Match(map[string]string{"a": "b"})
	})
}

func interval(t *testing.T, text string) TimeInterval {
	t.Helper()
	cfg, err := Load("r.yaml", []byte("route: {receiver: a}\nreceivers: [{name: a}]\ntime_intervals: [{name: x, time_intervals: [{"+text+"}]}]"), kinds)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Intervals[0].Intervals[0]
}

// alertmanager#2646, #5447: zones, negative days and clock changes.
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		interval, at string
		want         bool
	}{
		{`days_of_month: ['-1'], location: Europe/London`, "2026-10-31T12:00:00Z", true},
		{`days_of_month: ['-1'], location: Europe/London`, "2026-10-30T23:30:00Z", false}, // winter time since the 25th
		{`days_of_month: ['-1'], location: Europe/London`, "2026-03-30T23:30:00Z", true},  // 00:30 on the 31st: summer time
		{`days_of_month: ['-1'], location: Europe/London`, "2026-03-30T22:30:00Z", false},
		{`days_of_month: ['-1']`, "2028-02-29T00:00:00Z", true},
		{`days_of_month: ['-3:-1']`, "2026-02-26T10:00:00Z", true},
		{`days_of_month: ['-3:-1']`, "2026-02-25T10:00:00Z", false},
		{`days_of_month: ['28:-1']`, "2026-03-29T10:00:00Z", true},
		{`days_of_month: ['-31']`, "2026-02-01T10:00:00Z", false}, // February has none
		{`days_of_month: ['-31:-1']`, "2026-02-01T10:00:00Z", true},
		// The night of the change, 25 October 2026: 01:30 London happens twice, both times it is 01:30.
		{`times: [{start_time: '01:00', end_time: '02:00'}], location: Europe/London`, "2026-10-25T00:30:00Z", true},
		{`times: [{start_time: '01:00', end_time: '02:00'}], location: Europe/London`, "2026-10-25T01:30:00Z", true},
		{`times: [{start_time: '01:00', end_time: '02:00'}], location: Europe/London`, "2026-10-25T02:00:00Z", false},
		// 29 March 2026: the hour from 01:00 does not exist.
		{`times: [{start_time: '01:00', end_time: '02:00'}], location: Europe/London`, "2026-03-29T01:00:00Z", false},
		{`times: [{start_time: '09:00', end_time: '17:00'}], weekdays: ['monday:friday'], location: Asia/Kolkata`, "2026-09-14T03:29:00Z", false},
		{`times: [{start_time: '09:00', end_time: '17:00'}], weekdays: ['monday:friday'], location: Asia/Kolkata`, "2026-09-14T03:30:00Z", true},
		{`times: [{start_time: '09:00', end_time: '17:00'}], weekdays: ['monday:friday'], location: Asia/Kolkata`, "2026-09-14T11:30:00Z", false},
		{`weekdays: [saturday, sunday], location: Pacific/Auckland`, "2026-09-18T12:30:00Z", true}, // Saturday there
		{`times: [{start_time: '22:00', end_time: '24:00'}]`, "2026-09-14T23:59:59Z", true},
		{`months: ['december:december'], years: ['2026:2027']`, "2026-12-05T00:00:00Z", true},
		{`months: ['1:11']`, "2026-12-05T00:00:00Z", false},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := interval(t, c.interval).Contains(at); got != c.want {
			t.Errorf("{%s} at %s: %v", c.interval, c.at, got)
		}
	}
}

const good = `
route:
  receiver: all
  group_wait: 30s
  routes:
    - matchers: ['page="true"']
      receiver: oncall
      group_wait: 0s
      continue: true
      routes:
        - matchers: [team="db"]
          receiver: db
    - matchers: [severity="minor"]
      receiver: office
      mute_time_intervals: [night]
receivers: [{name: all, chat_configs: [{}]}, {name: oncall, pager_configs: [{}]}, {name: db, pager_configs: [{}]}, {name: office}]
time_intervals: [{name: night, time_intervals: [{times: [{start_time: '00:00', end_time: '06:00'}]}]}]
`

func TestTree(t *testing.T) {
	cfg, err := Load("r.yaml", []byte(good), kinds)
	if err != nil {
		t.Fatal(err)
	}
	night, noon := time.Date(2026, 9, 14, 3, 0, 0, 0, time.UTC), time.Date(2026, 9, 14, 12, 0, 0, 0, time.UTC)
	wait := 30 * time.Second
	for _, c := range []struct {
		labels map[string]string
		at     time.Time
		want   []Match
	}{
		{nil, noon, []Match{{Receiver: "all", GroupWait: wait}}},
		{map[string]string{"page": "true"}, noon, []Match{{Receiver: "oncall"}}},
		{map[string]string{"page": "true", "team": "db"}, noon, []Match{{Receiver: "db"}}},
		{map[string]string{"page": "true", "severity": "minor"}, night, []Match{{Receiver: "oncall"}, {Receiver: "office", GroupWait: wait, Quiet: "night"}}},
		{map[string]string{"severity": "minor"}, noon, []Match{{Receiver: "office", GroupWait: wait}}},
	} {
		if diff := cmp.Diff(c.want, cfg.Match(c.labels, c.at)); diff != "" {
			t.Errorf("%v: %s", c.labels, diff)
		}
	}
}

// alertmanager#1759 (an unknown receiver drops silently), keep#6793 (accepted, displayed, never applied): refused at load.
func TestMistakesAreRefusedWithTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown receiver", "receiver: db", "receiver: bd", `r.yaml:12:21: receiver "bd" is not defined (did you mean "db"?)`},
		{"unknown interval", "[night]", "[nigth]", `r.yaml:15:29: time interval "nigth" is not defined`},
		{"no root receiver", "route:\n  receiver: all", "route:", "r.yaml:3:3: the root route needs a receiver"},
		{"root matchers", "route:\n", "route:\n  matchers: [a=b]\n", "r.yaml:3:13: the root route must match everything"},
		{"paging waits", "group_wait: 0s", "group_wait: 5s", "pages do not wait"},
		{"bad matcher", "team=\"db\"", "team", `one of = != =~ !~ is expected after "team"`},
		{"twice", "{name: db,", "{name: oncall,", `receiver "oncall" is given twice`},
		{"unknown kind", "{name: office}", "{name: office, pagr_configs: []}", `unknown field "pagr_configs" in receiver "office" (did you mean "pager_configs"?)`},
		{"group_by", "route:\n", "route:\n  group_by: ['...']\n", "r.yaml:3:13: group_by is not used here (incidents are grouped by the detector"},
		{"repeat", "route:\n", "route:\n  repeat_interval: 4h\n", "repeat_interval is not used here"},
		{"zone", "'06:00'}]}", "'06:00'}], location: Europe/Belrin}", "is no IANA time zone"},
		{"local", "'06:00'}]}", "'06:00'}], location: Local}", "differs from machine to machine"},
		{"night over midnight", "start_time: '00:00'", "start_time: '22:00'", "start_time must be before end_time"},
		{"fallback", "{name: office}", "{name: office, fallback: nobody}", `fallback receiver "nobody" is not defined`},
		{"own fallback", "{name: office}", "{name: office, fallback: office}", "cannot be its own fallback"},
		{"typo", "continue: true", "continu: true", `unknown field "continu"`},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Fatalf("%s: nothing to replace", c.name)
		}
		_, err := Load("r.yaml", []byte(text), kinds)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// keep#6793: what is accepted and never applies is said.
func TestWarnings(t *testing.T) {
	cfg, err := Load("r.yaml", []byte(strings.Replace(strings.Replace(good, "receiver: db", "receiver: oncall", 1), "mute_time_intervals: [night]", "continue: true", 1)), kinds)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`r.yaml:16:123: receiver "office" leads nowhere: what is routed to it is told to nobody`,
		`r.yaml:16:90: receiver "db" is used by no route`, `r.yaml:17:25: time interval "night" is used by no route`}
	var got []string
	for _, w := range cfg.Warnings() {
		got = append(got, w.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
