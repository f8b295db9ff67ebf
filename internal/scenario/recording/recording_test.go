package recording_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/scenario/recording"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func readAll(t *testing.T, dir string) (events []signal.Event, errs []error) {
	t.Helper()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.All() {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		events = append(events, e)
	}
	return events, errs
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// demo is the demo's files in a folder, with a shorter scenario.
func demo(t *testing.T) *scenario.Scenario {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../deploy/demo")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "scenarios", "2026-09-13.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer("\nstart: \"05:30\"", "\nstart: \"08:35\"", "\nend: \"11:15\"", "\nend: \"08:50\"").Replace(string(text))
	write(t, filepath.Dir(name), filepath.Base(name), short)
	s, err := scenario.LoadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	s := demo(t)
	dir := filepath.Join(t.TempDir(), "new", "folder")
	truth, err := recording.Write(dir, s, 3)
	if err != nil {
		t.Fatal(err)
	}
	got, errs := readAll(t, dir)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	var want []signal.Event
	for slice := range s.Generate(3) {
		for e := range slice.Events() {
			want = append(want, e)
		}
	}
	if len(want) < 50_000 || uint64(len(want)) != truth.Requests+truth.Gauges+truth.Tickets+truth.Changes {
		t.Fatalf("%d events", len(want))
	}
	if len(got) != len(want) {
		t.Fatalf("%d events of %d come back", len(got), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Fatalf("event %d (-written +read):\n%s", i, diff)
		}
	}
	r, err := recording.Open(dir)
	if err != nil || r.Name != "folder" || r.Catalogue == "" || r.Labels == "" || r.Rules != "" {
		t.Errorf("%+v, %v", r, err)
	}
	var labels scenario.Labels
	text, err := os.ReadFile(r.Labels)
	if err != nil {
		t.Fatal(err)
	}
	if err := strictyaml.Decode(r.Labels, text, &labels); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(truth.Labels, labels); diff != "" {
		t.Errorf("labels (-truth +read):\n%s", diff)
	}
}

func TestTolerance(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "events.jsonl", strings.Join([]string{
		`{"type":"request","time":1789292580000,"service":"a","operation":"b","outcome":"success","later":{"x":[1]},"status":200,"attributes":{"n":1,"b":true,"z":null}}`,
		``,
		`{"type":"request","time":"2026-09-13T11:43:00+02:00","service":"a","operation":"b","access":"read","outcome":"failure","count":3,"latency_ms":1.5}` + "\r",
		`{"type":"gauge","time":"2026-09-13T09:43:00Z","resource":"r","value":1}`,
		`{"type":"gauge","time":"2026-09-13T09:43:00Z","reso`,
		`{"type":"metric","time":"2026-09-13T09:43:00Z"}`,
		`{"type":"alert","version":"4","receiver":"x","alerts":[{"status":"firing","labels":{"alertname":"A"},"startsAt":"2026-09-13T09:43:00Z","endsAt":"0001-01-01T00:00:00Z"},{"status":"resolved","labels":{"alertname":"B"},"startsAt":"2026-09-13T09:43:00Z","endsAt":"2026-09-13T09:44:00Z"}]}`,
		`{"type":"ticket","time":"2026-09-13T09:43:00Z","id":7,"subject":"s"}`,
	}, "\n"))
	got, errs := readAll(t, dir)
	at := time.Date(2026, 9, 13, 9, 43, 0, 0, time.UTC)
	path := signal.Path{Service: "a", Operation: "b"}
	read := path
	read.Access = signal.Read
	want := []signal.Event{
		&signal.Request{Time: at, Path: path, Count: 1, Status: "200", Latency: -1, Attempt: 1, Attributes: signal.NewAttributes(map[string]string{"n": "1", "b": "true"})},
		&signal.Request{Time: at, Path: read, Outcome: signal.Failure, Count: 3, Latency: 1500 * time.Microsecond, Attempt: 1},
		&signal.Alert{Time: at, Status: "firing", Labels: signal.NewAttributes(map[string]string{"alertname": "A"}), StartsAt: at, Receiver: "x"},
		&signal.Alert{Time: at.Add(time.Minute), Status: "resolved", Labels: signal.NewAttributes(map[string]string{"alertname": "B"}), StartsAt: at, EndsAt: at.Add(time.Minute), Receiver: "x"},
		&signal.Ticket{Time: at, ID: "7", Subject: "s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	wantErrs := []string{"events.jsonl:4: metric: is required", "events.jsonl:5: unexpected end", `events.jsonl:6: type: "metric" is none of`}
	if len(errs) != len(wantErrs) {
		t.Fatalf("errors: %v", errs)
	}
	for i, err := range errs {
		var line *recording.LineError
		if !errors.As(err, &line) || !strings.Contains(err.Error(), wantErrs[i]) {
			t.Errorf("error %v, want %s", err, wantErrs[i])
		}
	}
}

func TestStopsWhenAsked(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "events.jsonl", strings.Repeat("nonsense\n", 5))
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range r.All() {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d lines after a break at the second", n)
	}
}

func TestBrokenFiles(t *testing.T) {
	if _, err := recording.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no events.jsonl") {
		t.Errorf("an empty folder: %v", err)
	}
	both := t.TempDir()
	write(t, both, "events.jsonl", "")
	write(t, both, "events.jsonl.gz", "")
	if _, err := recording.Open(both); err == nil {
		t.Error("two files of events are accepted")
	}
	cut := t.TempDir()
	var z strings.Builder
	w := gzip.NewWriter(&z)
	for i := range 2000 {
		fmt.Fprintf(w, `{"type":"gauge","time":%d,"resource":"r","metric":"m","value":%d}`+"\n", 1789292580000+i, i*i)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, cut, "events.jsonl.gz", z.String()[:z.Len()/2])
	events, errs := readAll(t, cut)
	if len(events) == 0 || len(errs) == 0 {
		t.Errorf("a file cut off: %d events and %v; what can be read and why no more", len(events), errs)
	}
	long := t.TempDir()
	write(t, long, "events.jsonl", "\n"+strings.Repeat("x", recording.MaxLine+1))
	if _, errs := readAll(t, long); len(errs) != 1 || !strings.Contains(errs[0].Error(), "events.jsonl:2: the line is longer") {
		t.Errorf("a long line: %v", errs)
	}
}

// TestPublicRecordings reads every recording that lies beside the checkout.
func TestPublicRecordings(t *testing.T) {
	root, err := filepath.Abs("../../../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("../shared/data is not there")
	}
	var dirs []string
	err = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "events.jsonl") {
			dirs = append(dirs, filepath.Dir(p))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) < 100 {
		t.Errorf("%d recordings", len(dirs))
	}
	if testing.Short() {
		dirs = dirs[:10]
	}
	total := 0
	for _, dir := range dirs {
		r, err := recording.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		n, last := 0, time.Time{}
		for e, err := range r.All() {
			if err != nil {
				t.Fatal(err)
			}
			if e.At().Before(last) {
				t.Fatalf("%s: event %d is of %s after one of %s", r.Events, n, e.At(), last)
			}
			last = e.At()
			n++
		}
		if n == 0 {
			t.Errorf("%s is empty", r.Events)
		}
		total += n
	}
	t.Logf("%d events of %d recordings", total, len(dirs))
}
