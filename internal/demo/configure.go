package demo

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tocsin-project/tocsin/rules"
)

// What the stand-ins take for a routing key and a token. They open nothing.
const (
	routingKey = "demo0demo0demo0demo0demo0demo0de"
	slackToken = "xoxb-demo-0000000000-demo"
)

func (d *Demo) configFile() string { return filepath.Join(d.Dir, "tocsin", "tocsin.yaml") }

// configure writes the daemon's configuration as a user would: a file, routes with secrets beside them, a catalogue.
func (d *Demo) configure(context.Context) error {
	listen, err := freePort(d.Listen)
	if err != nil {
		return err
	}
	if d.api = newAPI("http://" + listen); listen != d.Listen && !strings.HasSuffix(d.Listen, ":0") {
		d.screen.line("            %s is taken, so the command line needs --url=%s", d.Listen, d.api.base)
	}
	routes, err := fs.ReadFile(rules.FS, "routes.yaml")
	if err != nil {
		return err
	}
	// A replay's clock runs with its records: a pause of the machine is minutes of it, and no partition has really fallen behind.
	clock, hold := "records", "12h"
	if d.WallClock {
		clock, hold = "wall", "2m"
	}
	global := fmt.Sprintf("global:\n  pagerduty_url: %s\n  slack_api_url: %s\n", d.PagerDuty.URL, d.Slack.URL)
	dir := filepath.Dir(d.configFile())
	for name, content := range map[string]string{
		"tocsin.yaml":                   fmt.Sprintf(configText, listen, d.broker.Addr(), d.engine.Addr(), clock, hold),
		"routes.yaml":                   global + string(routes),
		"catalogue.yaml":                string(d.Scenario.Catalogue),
		"secrets/pagerduty_routing_key": routingKey + "\n",
		"secrets/slack_token":           slackToken + "\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return fmt.Errorf("writing the daemon's configuration: %w", err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing the daemon's configuration: %w", err)
		}
	}
	return nil
}

// configText is a configuration for a replay: times are the records' own, and intervals that are seconds by the wall
// clock in production are shorter, because a minute of the scenario passes in a fraction of one.
const configText = `http: {listen: %q}
kafka:
  brokers: [%q]
  session_timeout: 6s
clickhouse: {addresses: [%q]}
files: {routes: routes.yaml, catalogue: catalogue.yaml}
ingest:
  start: beginning
  clock: %s
  min_linger: 100ms
  max_linger: 800ms
  inserts_per_second: 12
  fetch_wait: 100ms
detect: {poll: 100ms, hold: %s}
respond:
  data_dir: outbox
  poll: 200ms
  edit_interval: 1s
self_page: {receivers: [oncall]}
`
