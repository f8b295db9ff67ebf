package cli

import (
	"strings"
	"testing"
)

// amtool's habits: add prints the id, list shows the author, expire says who ended it, and `why` tells all of it.
func TestSilences(t *testing.T) {
	running(t)
	got := call(t, Env{}, "silence", "add", "state=declared", `severity=~"major|critical"`, "-d", "2h", "-a", "ada", "-c", "moving the database")
	id := strings.TrimSpace(got.out)
	if got.code != 0 || len(id) < 10 || !strings.HasPrefix(got.err, "active until ") {
		t.Fatalf("add: %+v", got)
	}
	list := call(t, Env{}, "silence", "list").out
	if !strings.Contains(list, id+"  active  state=declared severity=~\"major|critical\"") || !strings.Contains(list, "ada  moving the database") {
		t.Errorf("list:\n%s", list)
	}
	if why := call(t, Env{}, "why", "T-1").out; !strings.Contains(why, "It is silenced: nothing new is told before ") || !strings.Contains(why, "by ada: moving the database") {
		t.Errorf("why:\n%s", why)
	}
	if why := call(t, Env{}, "why", "T-2").out; strings.Contains(why, "silenced") {
		t.Errorf("why of another:\n%s", why)
	}
	if got := call(t, Env{}, "silence", "expire", id, "-a", "grace"); got.code != 0 || got.out != id+" expired\n" {
		t.Errorf("expire: %+v", got)
	}
	if got := call(t, Env{}, "silence", "expire", id, "-a", "grace"); got.code != 1 || !strings.Contains(got.err, "already") {
		t.Errorf("expire again: %+v", got)
	}
	if got := call(t, Env{}, "silence", "query"); got.out != "no silence\n" {
		t.Errorf("query: %+v", got)
	}
	if list := call(t, Env{}, "silence", "list", "--all").out; !strings.Contains(list, "moving the database (ended by grace)") {
		t.Errorf("all:\n%s", list)
	}
	if why := call(t, Env{}, "why", "T-1").out; !strings.Contains(why, "when grace ended that") {
		t.Errorf("why afterwards:\n%s", why)
	}
	for args, want := range map[string]string{
		"silence add -a ada -c x":                                      "wants matchers",
		"silence add a=b -a ada":                                       "--comment: say why",
		"silence add a=b -a ada -c x -d soon":                          "duration \"soon\"",
		"silence add nonsense -a ada -c x":                             "matcher \"nonsense\"",
		"silence add a!=b -a ada -c x":                                 "match everything",
		"silence add a=b -a ada -c x --end tomorrow":                   "--end \"tomorrow\"",
		"silence add a=b -a ada -c x -d 1h --end 2026-09-13T08:00:00Z": "not both",
		"silence expire nope -a ada":                                   "there is no such silence",
	} {
		if got := call(t, Env{}, strings.Fields(args)...); got.code == 0 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}
