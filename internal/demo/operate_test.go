package demo

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

const operatedRules = `groups:
  - name: operated
    rules:
      - {alert: Failing, kind: failure_rate, above: 10%%, window: 2m, min_failures: 10, annotations: {summary: failing, runbook_url: "https://example.org/failing"}}
      - alert: HighImpact
        kind: high_impact
        services: 4
        share: 50%%
        min_failures: 20
        declare: %s
        critical: 60
        annotations: {summary: customers are affected, runbook_url: "https://example.org/impact"}
`

// order sends what an operator does over HTTP.
func (d *Demo) order(t *testing.T, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.api.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := d.api.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// An operator changes a rule while an incident is open, with a mistake first, and keeps its page back by a silence. What was
// in force stays so after the mistake, the rule is in force after the reload, and the page comes when the silence is ended.
func TestReloadAndSilence(t *testing.T) {
	t.Parallel()
	d, rules := operated(t, fmt.Sprintf(operatedRules, "50"), "")
	write := func(text string) { rewrite(t, rules, text) }
	metric := func(want string) {
		t.Helper()
		res, err := d.api.http.Get(d.api.base + "/metrics") //nolint:noctx // on loopback, with the client's timeout
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), "\n"+want+"\n") {
			t.Errorf("no %s in the metrics, %v", want, err)
		}
	}
	one := func() (in incident.Incident) {
		if list, err := d.api.Incidents(t.Context()); err == nil && len(list) == 1 {
			in = list[0]
		}
		return in
	}
	at := d.minutes(t, time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC), 30, 0)
	at = d.minutes(t, at, 6, 7)
	suspected := ""
	eventually(t, 20*time.Second, "trouble is suspected", func() bool {
		in := one()
		suspected = in.ID
		return in.ID != "" && in.State == incident.Suspected
	})

	good := fmt.Sprintf(operatedRules, "0.5")
	write(good[:strings.Index(good, "services: 4")+3])
	status, said := d.order(t, "/-/reload", "")
	if status != http.StatusInternalServerError || !strings.Contains(said, rules+":") || !strings.Contains(said, "stays so") {
		t.Errorf("half a file: %d %s", status, said)
	}
	metric("tocsin_config_last_reload_successful 0")
	if said := d.ready(t); !strings.Contains(said, "Tocsin is ready") {
		t.Errorf("half a file took Tocsin out of service: %s", said)
	}

	if status, said = d.order(t, "/api/v1/silences", `{"matchers":["service=issues"],"duration":"1h","by":"ada","comment":"moving the database"}`); status != http.StatusCreated {
		t.Fatalf("a silence: %d %s", status, said)
	}
	write(good)
	if status, said = d.order(t, "/-/reload", ""); status != http.StatusOK || !strings.Contains(said, "rules: 2 in 1 groups") || strings.Contains(strings.SplitN(said, "\n", 2)[0], "as before") {
		t.Fatalf("the whole file: %d %s", status, said)
	}
	metric("tocsin_config_last_reload_successful 1")
	at = d.minutes(t, at, 6, 7)
	eventually(t, 20*time.Second, "the incident is declared by the new rule", func() bool { return one().State == incident.Declared })
	in, err := d.api.Incident(t.Context(), one().ID, 0, false)
	if err != nil || in.Incident.ID != suspected || len(in.Silences) != 1 || in.Silences[0].CreatedBy != "ada" {
		t.Fatalf("%s was suspected; %s, %v", suspected, pretty(t, in), err)
	}
	d.minutes(t, at, 4, 7)
	d.drained(t)
	if alerts := d.PagerDuty.State().Alerts; len(alerts) != 0 {
		t.Errorf("paged under a silence: %s", pretty(t, alerts))
	}
	if status, said = d.order(t, "/api/v1/silences/"+in.Silences[0].ID+"/expire", `{"by":"grace"}`); status != http.StatusOK {
		t.Fatalf("ending the silence: %d %s", status, said)
	}
	eventually(t, 20*time.Second, "the page comes", func() bool {
		alerts := d.PagerDuty.State().Alerts
		return len(alerts) == 1 && alerts[0].Status == "triggered"
	})
}
