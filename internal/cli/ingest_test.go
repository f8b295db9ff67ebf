package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRewindAsksFirst(t *testing.T) {
	var got RewindOptions
	var fails error
	plan := []Rewound{{Partition: 0, From: 100, To: 40}, {Partition: 1, Skipped: "stored is up to 7"}}
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		env := Env{Stdout: &out, Stderr: &errs, Rewind: func(_ context.Context, o RewindOptions) ([]Rewound, error) {
			got = o
			return plan, fails
		}}
		code := Execute(t.Context(), env, append([]string{"ingest", "rewind"}, args...))
		return code, out.String(), errs.String()
	}
	code, out, _ := run("--topic", "t", "--to", "40")
	if code != 1 || !strings.Contains(out, "t/0  read up to 100, again from 40: 60 offsets") || !strings.Contains(out, "t/1  left alone") || !strings.Contains(out, "Nothing was done") {
		t.Errorf("%d %s", code, out)
	}
	if got.Really || got.Offset != 40 || got.Partition != -1 {
		t.Errorf("%+v", got)
	}
	code, out, _ = run("--topic", "t", "--to", "2026-09-13T08:00:00Z", "--partition", "3", "--yes", "--reason", "wrong pipeline")
	if code != 0 || !strings.Contains(out, "Done") || !got.Really || got.Offset != -1 || got.Time.Hour() != 8 || got.Partition != 3 {
		t.Errorf("%d %s %+v", code, out, got)
	}
	all := plan
	plan = all[1:]
	for _, yes := range []string{"--yes", "--yes=false"} {
		if code, out, _ = run("--topic", "t", "--to", "40", "--reason", "x", yes); code != 1 || !strings.Contains(out, "there is nothing to do") || strings.Contains(out, "Start the daemon") {
			t.Errorf("nothing to go back from: %d %s", code, out)
		}
	}
	plan = all
	fails = errors.New("somebody reads")
	if code, _, errs := run("--topic", "t", "--to", "1", "--yes", "--reason", "x"); code != 1 || !strings.Contains(errs, "somebody reads") {
		t.Errorf("%d %s", code, errs)
	}
	for _, args := range [][]string{{"--to", "1"}, {"--topic", "t"}, {"--topic", "t", "--to", "noon"}, {"--topic", "t", "--to", "-1"}, {"--topic", "t", "--to", "1", "--yes"}} {
		if code, _, _ := run(args...); code != 2 {
			t.Errorf("%v: %d", args, code)
		}
	}
}
