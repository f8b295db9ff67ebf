package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Three sets of rules that judge differently: thresholds move, one rule goes and another comes. Busy asks ClickHouse what it would answer otherwise a moment later.
var storedRules = []string{`groups:
  - name: first
    rules:
      - {alert: Failing, kind: failure_rate, above: 10%, window: 2m, min_failures: 10, annotations: {summary: "{{$labels.service}} fails", runbook_url: "https://example.org/failing"}}
      - {alert: Slow, kind: latency, above: 20%, slower_than: 600ms, window: 2m, min_requests: 20, annotations: {summary: slow, runbook_url: "https://example.org/slow"}}
      - {alert: Busy, kind: sql, query: "SELECT dictionary.service AS service, count() AS value FROM cells INNER JOIN keys AS dictionary FINAL ON dictionary.id = cells.key WHERE marker = 0 AND bucket >= {from:DateTime64(3)} AND bucket < {to:DateTime64(3)} GROUP BY service", above: 10, window: 3m, annotations: {summary: busy, runbook_url: "https://example.org/busy"}}
      - {alert: HighImpact, kind: high_impact, services: 4, share: 50%, min_failures: 20, declare: 1, critical: 60, annotations: {summary: customers are affected, runbook_url: "https://example.org/impact"}}
`, `groups:
  - name: second
    rules:
      - {alert: Failing, kind: failure_rate, above: 45%, window: 1m, min_failures: 5, annotations: {summary: "{{$labels.service}} fails <much>", runbook_url: "https://example.org/failing"}}
      - {alert: Refused, kind: failure_rate, bad: [rejected], above: 5%, window: 1m, min_failures: 5, annotations: {summary: refused, runbook_url: "https://example.org/refused"}}
      - {alert: HighImpact, kind: high_impact, services: 2, share: 30%, min_failures: 20, declare: 0.5, critical: 2, annotations: {summary: customers are affected, runbook_url: "https://example.org/impact"}}
`, `groups:
  - name: third
    interval: 30s
    rules:
      - {alert: Failing, kind: failure_rate, above: 5%, window: 5m, for: 30s, min_failures: 10, annotations: {summary: "{{$labels.service}} fails", runbook_url: "https://example.org/failing"}}
      - {alert: Slow, kind: latency, above: 30%, slower_than: 300ms, window: 1m, min_requests: 10, annotations: {summary: slow, runbook_url: "https://example.org/slow"}}
      - {alert: Busy, kind: sql, query: "SELECT dictionary.service AS service, count() AS value FROM cells INNER JOIN keys AS dictionary FINAL ON dictionary.id = cells.key WHERE marker = 0 AND bucket >= {from:DateTime64(3)} AND bucket < {to:DateTime64(3)} GROUP BY service", above: 5, no_data: zero, window: 3m, annotations: {summary: busy, runbook_url: "https://example.org/busy"}}
      - {alert: HighImpact, kind: high_impact, services: 4, share: 50%, min_failures: 20, declare: 1, critical: 60, annotations: {summary: customers are affected, runbook_url: "https://example.org/impact"}}
`}

// reached waits until event time has been judged up to a minute before at.
func (d *Demo) reached(t *testing.T, at time.Time) {
	t.Helper()
	eventually(t, 30*time.Second, "it is judged up to "+at.Format("15:04:05"), func() bool {
		s, err := d.api.Status(t.Context())
		return err == nil && !s.To.Before(at.Add(-time.Minute))
	})
}

// live plays minutes one after the other, each judged before the next, as they are live.
func (d *Demo) live(t *testing.T, from time.Time, n int, what ...minute) time.Time {
	t.Helper()
	for range n {
		from = d.lines(t, from, 1, time.Time{}, what...)
		d.reached(t, from)
	}
	return from
}

// A live run with rows that come late, two reloads by other rules and three restarts - by a kill, in good order, and by
// another process that takes over - is replayed by `tocsin backtest` from what ClickHouse has of it. It comes to the same
// changes of findings and the same events of incidents, byte for byte. When inputs have expired it says that it is approximate.
func TestStoredHistoryIsReplayedByteForByte(t *testing.T) {
	t.Parallel()
	d, rules := operated(t, storedRules[0], "external_labels: {cluster: here}\n")
	write := func(text string) { rewrite(t, rules, text) }
	begin := time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)
	well, slow := minute{service: "issues", good: 60}, minute{service: "pulls", good: 40, latency: 700 * time.Millisecond}
	ill, refused := minute{service: "issues", good: 30, bad: 30}, minute{service: "gists", good: 30, rejected: 10}
	onTime := time.Time{}

	at := d.lines(t, begin, 20, onTime, well, slow, minute{service: "gists", good: 30})
	at = d.live(t, at, 4, ill, slow, refused)
	in := d.incident(t, incident.Declared)
	if log, err := os.ReadFile(d.logFile()); err != nil || bytes.Contains(log, []byte("level=ERROR")) {
		t.Errorf("a first start has errors in its log, %v:\n%s", err, log)
	}

	// Late rows, of two services and before and within the trouble.
	d.lines(t, at.Add(-8*time.Minute), 6, at, minute{service: "issues", bad: 15}, minute{service: "wikis", good: 20, bad: 40})
	at = d.live(t, at, 2, ill, slow, refused)

	d.KillDaemon()
	if err := d.StartDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, said := d.order(t, "/api/v1/incidents/"+in+"/acknowledge", `{"by":"ada","note":"<looking>"}`); status >= http.StatusMultipleChoices {
		t.Fatalf("acknowledging: %d %s", status, said)
	}
	d.incident(t, incident.Acknowledged)

	write(storedRules[1])
	if err := d.daemon.Load().cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the rules are reloaded", func() bool {
		log, err := os.ReadFile(d.logFile())
		return err == nil && bytes.Contains(log, []byte("reloaded"))
	})
	at = d.live(t, at, 4, minute{service: "issues", good: 40, bad: 20}, slow, refused)
	if err := d.daemon.Load().stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	at = d.lines(t, at, 3, onTime, ill, slow, refused) // while nobody looks
	d.lines(t, at.Add(-15*time.Minute), 3, at, minute{service: "gists", bad: 9})
	if err := d.StartDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	at = d.live(t, at, 3, well, slow, refused)

	write(storedRules[2])
	if status, said := d.order(t, "/-/reload", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, said)
	}
	at = d.live(t, at, 5, well, slow)
	d.handOver(t)
	at = d.lines(t, at, 2, onTime, well, minute{service: "pulls", good: 5})
	d.lines(t, at.Add(-4*time.Minute), 2, at, minute{service: "issues", bad: 60})
	at = d.live(t, at, 8, well, minute{service: "pulls", good: 5})
	d.drained(t)

	code, out, said := d.backtest(t, begin.Add(-time.Hour), at.Add(time.Hour), "--output", "log", "--verify")
	if code != 0 || said != "" {
		t.Errorf("tocsin backtest ended with %d: %s", code, said)
	}
	log := d.storedLog(t)
	d.dull(t, log)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(log) {
		t.Errorf("%d lines in the replay, %d stored", len(lines), len(log))
	}
	for i := range min(len(lines), len(log)) {
		if lines[i] != log[i].line {
			t.Fatalf("line %d of %d: the replay says\n%s\nstored is\n%s", i, len(log), lines[i], log[i].line)
		}
	}
	t.Logf("%d lines are the same", len(lines))

	// A symptom of then is explained from it, though its rows were claimed by a tick that ended later.
	code, out, said = d.tocsin(t, "explain", "--service", "issues", "--at", begin.Add(24*time.Minute).Format(time.RFC3339), "--output", "json")
	if code != 0 || !strings.Contains(strings.ReplaceAll(out, " ", ""), `"departs":true`) {
		t.Errorf("tocsin explain ended with %d: %s%s", code, out, said)
	}

	// Rows that have expired leave what cannot be told from an hour without requests but by their number.
	if err := d.conn(t).Exec(t.Context(), "ALTER TABLE tick_cells MODIFY TTL inserted_at - INTERVAL 1 DAY SETTINGS materialize_ttl_after_modify = 1, mutations_sync = 2"); err != nil {
		t.Fatal(err)
	}
	if err := d.conn(t).Exec(t.Context(), "OPTIMIZE TABLE tick_cells FINAL"); err != nil {
		t.Fatal(err)
	}
	code, out, _ = d.backtest(t, begin.Add(-time.Hour), at.Add(time.Hour), "--verify")
	if code == 0 || !strings.Contains(out, "approximate: the inputs of the tick that ended at ") || !strings.Contains(out, "not as live: ") {
		t.Errorf("without rows tocsin backtest ended with %d: %s", code, out)
	}
}

// incident waits until the one incident has a state, and gives its id.
func (d *Demo) incident(t *testing.T, state incident.State) (id string) {
	t.Helper()
	eventually(t, 20*time.Second, "an incident is "+state.String(), func() bool {
		list, err := d.api.Incidents(t.Context())
		i := slices.IndexFunc(list, func(in incident.Incident) bool { return in.State == state })
		if err == nil && i >= 0 {
			id = list[i].ID
		}
		return id != ""
	})
	return id
}

// handOver starts a second daemon and ends the first, so that the second leads.
func (d *Demo) handOver(t *testing.T) {
	t.Helper()
	listen, err := freePort("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(d.configFile())
	if err != nil {
		t.Fatal(err)
	}
	old := strings.TrimPrefix(d.api.base, "http://")
	config = bytes.Replace(bytes.Replace(config, []byte(old), []byte(listen), 1), []byte("data_dir: outbox"), []byte("data_dir: outbox2"), 1)
	file := filepath.Join(filepath.Dir(d.configFile()), "second.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := startDaemon(d.Binary, file, d.logFile())
	if err != nil {
		t.Fatal(err)
	}
	before := d.daemon.Swap(second)
	d.api = newAPI("http://" + listen)
	if err := d.api.waitReady(t.Context(), second.done); err != nil {
		t.Fatal(err)
	}
	if err := before.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the second process leads", func() bool {
		s, err := d.api.Status(t.Context())
		return err == nil && s.Leading
	})
}

// backtest runs the program over stored history.
func (d *Demo) backtest(t *testing.T, from, to time.Time, more ...string) (code int, stdout, stderr string) {
	t.Helper()
	return d.tocsin(t, append([]string{"backtest", "--from", from.Format(time.RFC3339), "--to", to.Format(time.RFC3339)}, more...)...)
}

// tocsin runs the program on the installation's configuration.
func (d *Demo) tocsin(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), d.Binary, append(args, "--config.file", d.configFile())...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), said.String()
}

// storedLine is one row of what was concluded, as the program would write it.
type storedLine struct {
	tick uint64
	kind string
	line string
}

// storedLog reads findings and incident events from the tables, and writes each from its columns as a line of JSON. An event's
// incident goes as its text was stored.
func (d *Demo) storedLog(t *testing.T) (out []storedLine) {
	t.Helper()
	type when struct{ *int64 }
	at := func(w when) time.Time {
		if w.int64 == nil {
			return time.Time{}
		}
		return time.UnixMilli(*w.int64).UTC()
	}
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	type placed struct {
		storedLine
		table, position uint64
	}
	var all []placed
	rows, err := d.conn(t).Query(t.Context(), `SELECT tick, position, toUnixTimestamp64Milli(at), toString(rule), toString(kind), toString(previous_state), toString(state),
		toString(service), operation, toString(access), resource, toString(metric), toString(area), attributes,
		toUnixTimestamp64Milli(active_at), toUnixTimestamp64Milli(fired_at), toUnixTimestamp64Milli(ended_at),
		value, requests, failures, accounts, labels, annotations, explain, partial FROM findings`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p placed
		var position uint32
		var ms int64
		var active, fired, ended when
		var from, state string
		var attributes map[string]string
		var accounts []uint64
		var partial uint8
		var tr incident.Transition
		f := &tr.Finding
		if err := rows.Scan(&p.tick, &position, &ms, &f.Rule, &f.Kind, &from, &state, &f.Key.Service, &f.Key.Operation, &f.Key.Access, &f.Key.Resource, &f.Key.Metric, &f.Key.Area, &attributes,
			&active.int64, &fired.int64, &ended.int64, &f.Value, &f.Requests, &f.Failures, &accounts, &f.Labels, &f.Annotations, &f.Explain, &partial); err != nil {
			t.Fatal(err)
		}
		tr.At, f.ActiveAt, f.FiredAt, f.EndedAt, f.Partial = time.UnixMilli(ms).UTC(), at(active), at(fired), at(ended), partial == 1
		f.Key.Attributes, f.Accounts = signal.NewAttributes(attributes), accounts
		if err := tr.From.UnmarshalText([]byte(from)); err != nil {
			t.Fatal(err)
		}
		if err := f.State.UnmarshalText([]byte(state)); err != nil {
			t.Fatal(err)
		}
		p.kind, p.position, p.line = f.Rule+" "+state, uint64(position), fmt.Sprintf(`{"tick":%d,"finding":%s}`, p.tick, text(&tr))
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	events, err := d.conn(t).Query(t.Context(), "SELECT tick, position, incident, sequence, toUnixTimestamp64Milli(at), toString(type), `by`, reason, toUnixTimestamp64Milli(clock), after FROM incident_events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for events.Next() {
		var p placed
		var position uint32
		var e struct {
			Incident string          `json:"incident"`
			Sequence uint64          `json:"sequence"`
			At       time.Time       `json:"at"`
			Type     string          `json:"type"`
			By       string          `json:"by,omitempty"`
			Reason   string          `json:"reason"`
			Tick     uint64          `json:"tick"`
			Clock    time.Time       `json:"clock"`
			After    json.RawMessage `json:"after"`
		}
		var ms, clock int64
		var after string
		if err := events.Scan(&p.tick, &position, &e.Incident, &e.Sequence, &ms, &e.Type, &e.By, &e.Reason, &clock, &after); err != nil {
			t.Fatal(err)
		}
		e.At, e.Clock, e.Tick, e.After = time.UnixMilli(ms).UTC(), time.UnixMilli(clock).UTC(), p.tick, json.RawMessage(after)
		p.kind, p.table, p.position, p.line = e.Type, 1, uint64(position), fmt.Sprintf(`{"tick":%d,"event":%s}`, p.tick, text(&e))
		all = append(all, p)
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b placed) int {
		for _, c := range [][2]uint64{{a.tick, b.tick}, {a.table, b.table}, {a.position, b.position}} {
			if c[0] != c[1] {
				return int(int64(c[0]) - int64(c[1]))
			}
		}
		return 0
	})
	for _, p := range all {
		out = append(out, p.storedLine)
	}
	return out
}

// dull fails where the run had none of what is hard to replay.
func (d *Demo) dull(t *testing.T, log []storedLine) {
	t.Helper()
	have := map[string]int{}
	for _, l := range log {
		have[l.kind]++
	}
	for _, want := range []string{"Failing firing", "Failing inactive", "Slow firing", "Slow inactive", "Refused firing", "Refused inactive", "Busy firing", "declared", "acknowledged"} {
		if have[want] == 0 {
			t.Errorf("nothing is %s in %v", want, have)
		}
	}
	var epochs, rules, late, ticks uint64
	err := d.conn(t).QueryRow(t.Context(), `SELECT (SELECT uniqExact(epoch) FROM ticks), (SELECT uniqExact(rules) FROM ticks),
		(SELECT uniqExact(c.tick) FROM tick_cells AS c INNER JOIN ticks AS t ON t.tick = c.tick WHERE c.bucket < t.from - INTERVAL 1 MINUTE AND t.tick > 1), (SELECT count() FROM ticks)`).Scan(&epochs, &rules, &late, &ticks)
	if err != nil || epochs != 4 || rules != 3 || late < 3 {
		t.Errorf("%d epochs, want 4; %d sets of rules, want 3; %d of %d ticks saw late rows, want 3 at least; %v", epochs, rules, late, ticks, err)
	}
	t.Logf("%d ticks in %d terms by %d sets of rules, %d saw late rows; %v", ticks, epochs, rules, late, have)
}
