package senderstest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A rule of Prometheus fires and is over: at the door, which Prometheus takes for an Alertmanager, and by way of a real
// Alertmanager's webhook. Both tell of the same two alerts under the same identity.
func TestPrometheusAndAlertmanager(t *testing.T) {
	prometheus, alertmanager := program(t, "prometheus"), program(t, "alertmanager")
	at := install(t, map[string]string{
		"prometheus":   "topic: tocsin.alerts\nstream: alerts\ndecoder: alertmanager\n",
		"alertmanager": "topic: tocsin.alerts.alertmanager\nstream: alerts\ndecoder: alertmanager\n",
	})
	am := start(t, alertmanager, "--cluster.listen-address=", "--web.listen-address=127.0.0.1:0", "--config.file="+file(t, "alertmanager.yml", fmt.Sprintf(`
route: {receiver: tocsin, group_by: [alertname], group_wait: 100ms, group_interval: 500ms, repeat_interval: 1h}
receivers:
  - name: tocsin
    webhook_configs:
      - {url: 'http://%s/ingest/alertmanager', send_resolved: true, http_config: {authorization: {credentials: %s}}}
`, at.door, token)))
	address := am.says(`msg="Listening on" address=(\S+)`)

	// One of the alerts is over when a few seconds have passed, the other never.
	over := time.Now().Add(6 * time.Second).Unix()
	rules := file(t, "rules.yml", fmt.Sprintf(`
groups:
  - name: senders
    interval: 1s
    rules:
      - alert: Brief
        expr: label_replace(vector(time()) < %d, "service", "issues", "", "")
        labels: {severity: critical}
        annotations: {summary: 'it is "brief" at {{ $labels.service }}'}
      - alert: Lasting
        expr: vector(1) > 0
        labels: {service: pages, severity: warning}
        annotations: {summary: '{{ $value }} page'}
`, over))
	start(t, prometheus, "--web.listen-address=127.0.0.1:0", "--storage.tsdb.path=data", "--config.file="+file(t, "prometheus.yml", fmt.Sprintf(`
global: {evaluation_interval: 1s, external_labels: {cluster: eu-1}}
rule_files: ['%s']
alerting:
  alertmanagers:
    - static_configs: [{targets: ['%s']}]
      authorization: {credentials: %s}
    - static_configs: [{targets: ['%s']}]
`, rules, at.door, token, address)))

	// Repetitions tell nothing new, so each status counts once.
	const seen = `SELECT DISTINCT labels['alertname'], status, labels['service'], labels['severity'], labels['cluster'], annotations['summary']
		FROM alerts WHERE marker = 0 AND topic = '%s' ORDER BY ALL`
	want := strings.Join([]string{
		"Brief\tfiring\tissues\tcritical\teu-1\tit is \"brief\" at issues",
		"Brief\tresolved\tissues\tcritical\teu-1\tit is \"brief\" at issues",
		"Lasting\tfiring\tpages\twarning\teu-1\t1 page",
	}, "\n")
	for _, topic := range []string{"tocsin.alerts", "tocsin.alerts.alertmanager"} {
		at.stored(t, fmt.Sprintf(seen, topic), want)
	}
	// Prometheus sends no fingerprint: it is computed as Alertmanager does.
	at.stored(t, `SELECT labels['alertname'], uniqExact(fingerprint), uniqExact(starts_at), uniqExact(topic) FROM alerts WHERE marker = 0 GROUP BY ALL ORDER BY ALL`,
		"Brief\t1\t1\t2\nLasting\t1\t1\t2")
	// The end is that of the rule, not of a message.
	at.stored(t, fmt.Sprintf(`SELECT uniqExact(ends_at), min(ends_at) >= toDateTime(%d), max(receiver) FROM alerts WHERE marker = 0 AND status = 'resolved'`, over),
		"1\t1\ttocsin")
}
