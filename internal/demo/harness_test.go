package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(programDir)
		os.Exit(code)
	}))
}

var programDir string

// programs builds what the demo starts, once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tocsin-programs-")
	if err != nil {
		return "", err
	}
	programDir = dir
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/tocsin", "../../cmd/chlocal").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
})

func load(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(deploy.Demo, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// up starts an installation in a folder of its own.
func up(t *testing.T, o Options) *Demo {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	o.Binary, o.Engine = filepath.Join(dir, "tocsin"), filepath.Join(dir, "chlocal")
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Listen, o.Fresh = "127.0.0.1:0", true
	if o.Out == nil {
		o.Out = io.Discard
	}
	d, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(o.Dir, "daemon.log"))
			t.Logf("the daemon's log:\n%s", log[max(0, len(log)-8000):])
		}
	})
	return d
}

// eventually waits for a condition.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

func (d *Demo) conn(t *testing.T) driver.Conn {
	t.Helper()
	c, err := ch.Open(&ch.Options{Protocol: ch.HTTP, Addr: []string{d.ClickHouse()}, Auth: ch.Auth{Database: "tocsin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// drained waits until the daemon has stored everything that the broker holds.
func (d *Demo) drained(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "ingest catches up", func() bool {
		s, err := d.api.Status(t.Context())
		if err != nil || len(s.Partitions) == 0 {
			return false
		}
		for _, p := range s.Partitions {
			if p.Lag > 0 || p.Problem != "" {
				return false
			}
		}
		return true
	})
}

type cellID struct {
	bucket int64
	key    signal.Key
}

type cellCounts struct{ success, failure, rejected, throttled, retries uint64 }

// sameAsTruth holds every stored cell to what the generator says it made.
func (d *Demo) sameAsTruth(t *testing.T) {
	t.Helper()
	want := map[cellID]cellCounts{}
	for x := range d.Feed.gen.Truth().Totals() {
		c := cellCounts{x.Outcomes[signal.Success], x.Outcomes[signal.Failure], x.Outcomes[signal.Rejected], x.Outcomes[signal.Throttled], x.Retries}
		if c != (cellCounts{}) {
			want[cellID{x.Bucket.UnixMilli(), x.Key}] = c
		}
	}
	got := map[cellID]cellCounts{}
	rows, err := d.conn(t).Query(t.Context(), `SELECT toUnixTimestamp64Milli(bucket), service, operation, access, attributes,
		sum(successes), sum(failures), sum(c.rejected), sum(throttled), sum(retries)
		FROM cells AS c INNER JOIN (SELECT id, service, operation, access, attributes FROM keys FINAL) AS k ON k.id = c.key
		WHERE marker = 0 GROUP BY bucket, service, operation, access, attributes`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id cellID
		var c cellCounts
		var access string
		var attributes map[string]string
		if err := rows.Scan(&id.bucket, &id.key.Service, &id.key.Operation, &access, &attributes, &c.success, &c.failure, &c.rejected, &c.throttled, &c.retries); err != nil {
			t.Fatal(err)
		}
		if id.key.Access, err = signal.ParseAccess(access); err != nil {
			t.Fatal(err)
		}
		id.key.Attributes = signal.NewAttributes(attributes)
		got[id] = c
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for id, w := range want {
		if g := got[id]; g != w {
			if wrong++; wrong <= 5 {
				t.Errorf("%s %v: stored %+v, made %+v", time.UnixMilli(id.bucket).UTC().Format("15:04:05"), id.key, g, w)
			}
		}
		delete(got, id)
	}
	if wrong > 0 || len(got) > 0 || len(want) == 0 {
		t.Errorf("%d of %d cells differ, %d were never made", wrong, len(want), len(got))
	}
}

// incidentLog reads the stored incident log, without what belongs to the ticks.
func (d *Demo) incidentLog(t *testing.T) (events []incident.Event) {
	t.Helper()
	list, err := d.api.Incidents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		a, err := d.api.Incident(t.Context(), list[i].ID, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, a.Events...)
	}
	return events
}

func pretty(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
