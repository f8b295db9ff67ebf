package demo

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/standin/pagerduty"
)

// PagerDuty refuses a page, then ClickHouse goes, then the daemon crashes and starts without its database. The page that waits
// in the outbox is sent all the same, once PagerDuty answers; Tocsin pages about itself within a minute, and says on /-/ready
// what it waits for. With the database back the incident goes on, and its page is closed once.
func TestARestartWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	d, _ := operated(t, fmt.Sprintf(operatedRules, "0.5"), "")
	d.PagerDuty.Fail(pagerduty.Error500, 1000)
	at := d.minutes(t, time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC), 30, 0)
	at = d.minutes(t, at, 6, 7)
	id := d.incident(t, incident.Declared)
	refused := d.PagerDuty.State().Calls
	eventually(t, 20*time.Second, "PagerDuty is asked for a page", func() bool { return d.PagerDuty.State().Calls > refused })

	if err := d.StopClickHouse(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.KillDaemon()
	child, err := startDaemon(d.Binary, d.configFile(), d.logFile())
	if err != nil {
		t.Fatal(err)
	}
	d.daemon.Store(child)
	started := time.Now()
	d.PagerDuty.Heal()
	alert := func(prefix, status string) bool {
		for _, a := range d.PagerDuty.State().Alerts {
			if strings.Contains(a.DedupKey, prefix) && a.Status == status {
				return true
			}
		}
		return false
	}
	var paged, blind time.Duration
	eventually(t, time.Minute, "the page that waited is sent and Tocsin pages about itself", func() bool {
		if paged == 0 && alert(id, "triggered") {
			paged = time.Since(started)
		}
		if blind == 0 && alert("tocsin/self/clickhouse", "triggered") {
			blind = time.Since(started)
		}
		return paged > 0 && blind > 0
	})
	t.Logf("after the restart: the page that waited %s, the page about itself %s", paged.Round(time.Second), blind.Round(time.Second))
	if said := d.ready(t); !strings.Contains(said, "not ready: waiting for ClickHouse") {
		t.Errorf("/-/ready says %q", said)
	}

	if err := d.StartClickHouse(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.minutes(t, at, 20, 0)
	eventually(t, 30*time.Second, "the page is closed", func() bool { return alert(id, "resolved") })
	for _, a := range d.PagerDuty.State().Alerts {
		if strings.Contains(a.DedupKey, id) && a.Triggers != 1 {
			t.Errorf("the incident was paged %d times: %s", a.Triggers, pretty(t, a))
		}
	}
	if said := d.ready(t); strings.Contains(said, "waiting for ClickHouse") {
		t.Errorf("/-/ready says %q", said)
	}
}

// ready is what /-/ready says, whatever its status.
func (d *Demo) ready(t *testing.T) string {
	t.Helper()
	res, err := d.api.http.Get(d.api.base + "/-/ready") //nolint:noctx // on loopback, with the client's timeout
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
