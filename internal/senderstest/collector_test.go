package senderstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// collectorConfig sends what comes in by OTLP to Kafka, in both encodings, with as little said as possible: what the
// exporter does at its defaults is what Tocsin has to read.
const collectorConfig = `
receivers: {otlp: {protocols: {http: {endpoint: '%[1]s'}}}}
processors: {cumulative_to_delta: {initial_value: drop}}
exporters:
  kafka/proto: {brokers: ['%[2]s'], traces: {topic: spans_proto}, metrics: {topic: metrics_proto}}
  kafka/json: {brokers: ['%[2]s'], traces: {topic: spans_json, encoding: otlp_json}, metrics: {topic: metrics_json, encoding: otlp_json}, producer: {compression: zstd}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [kafka/proto, kafka/json]}
    metrics: {receivers: [otlp], processors: [cumulative_to_delta], exporters: [kafka/proto, kafka/json]}
`

// collector starts one and gives the address of its receiver.
func collector(t *testing.T, config func(address string) string) (url string) {
	t.Helper()
	address := freeAddress(t)
	p := start(t, program(t, "collector"), "--config", file(t, "collector.yaml", config(address)))
	p.says("Everything is ready")
	return "http://" + address
}

type object = map[string]any

func attributes(kv ...string) (out []object) {
	for i := 0; i < len(kv); i += 2 {
		out = append(out, object{"key": kv[i], "value": object{"stringValue": kv[i+1]}})
	}
	return out
}

func post(t *testing.T, url string, body object) {
	t.Helper()
	j, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post(url, "application/json", bytes.NewReader(j))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", url, res.StatusCode)
	}
}

// truth counts by service, operation, access and region: successes, failures, rejected.
type truth map[[4]string]*[3]int

func (w truth) add(key [4]string, outcome, n int) {
	if w[key] == nil {
		w[key] = &[3]int{}
	}
	w[key][outcome] += n
}

func (w truth) rows() string {
	var out []string
	for k, n := range w {
		out = append(out, fmt.Sprintf("%s\t%d\t%d\t%d", strings.Join(k[:], "\t"), n[0], n[1], n[2]))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

const countedCells = `SELECT k.service, k.operation, k.access, k.attributes['region'], sum(c.successes), sum(c.failures), sum(c.rejected)
	FROM cells AS c INNER JOIN (SELECT * FROM keys FINAL) AS k ON k.id = c.key WHERE c.marker = 0 AND c.topic = '%s' GROUP BY 1, 2, 3, 4 ORDER BY ALL`

// Spans that an application sends to a Collector are counted as they were made, by way of both encodings.
func TestCollectorSpans(t *testing.T) {
	program(t, "collector")
	at := install(t, map[string]string{"proto": fmt.Sprintf(spanPipeline, "spans_proto", "otlp_proto"), "json": fmt.Sprintf(spanPipeline, "spans_json", "otlp_json")})
	want := sendSpans(t, collector(t, func(address string) string { return fmt.Sprintf(collectorConfig, address, at.kafka) }))
	for _, topic := range []string{"spans_proto", "spans_json"} {
		at.stored(t, fmt.Sprintf(countedCells, topic), want.rows())
	}
	// A failure can be looked up by its trace, whichever way it came.
	at.stored(t, `SELECT countIf(length(s.trace_id) != 32 OR s.trace_id NOT LIKE '00000000000000000000%'), uniqExact(topic)
		FROM (SELECT topic, arrayJoin(samples) AS s FROM cells WHERE marker = 0)`, "0\t2")
}

// The Collector takes the configuration that the documentation recommends, and all spans arrive, many to a record.
func TestCollectorAsDocumented(t *testing.T) {
	program(t, "collector")
	page, err := os.ReadFile("../../docs/ingest.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- the Collector of internal/senderstest -->\n```text\n")
	documented, _, found := strings.Cut(rest, "\n```\n")
	if !found {
		t.Fatal("docs/ingest.md has no configuration of a Collector")
	}
	at := install(t, map[string]string{"telemetry": fmt.Sprintf(spanPipeline, "otlp_spans", "otlp_proto")})
	want := sendSpans(t, collector(t, func(address string) string {
		return strings.NewReplacer("0.0.0.0:4318", address, "kafka.example.com:9092", at.kafka).Replace(documented) + "\n  telemetry: {metrics: {level: none}}\n"
	}))
	at.stored(t, fmt.Sprintf(countedCells, "otlp_spans"), want.rows())
	at.stored(t, "SELECT sum(marker_records) <= 10, sum(marker_rejected) FROM cells WHERE marker = 1", "1\t0") // 3000 spans
}

const spanPipeline = "topic: %s\nstream: requests\ndecoder: %s\nattributes: {region: [cloud.region]}\n"

// sendSpans sends twenty requests of an application's exporter, and says what they are.
func sendSpans(t *testing.T, url string) truth {
	t.Helper()
	now := time.Now()
	want := truth{}
	id := 0
	for range 20 {
		var resources []object
		for _, service := range []string{"checkout", "payments", "search"} {
			region := []string{"eu-west-1", "us-east-1"}[id%2]
			var spans []object
			for i := range 25 {
				id++
				route, method, status := fmt.Sprintf("/api/v1/things/{id}/part-%c", 'a'+i%3), []string{"GET", "POST"}[i%2], []string{"200", "503", "404", "200", "201"}[id%5]
				ids := object{"traceId": fmt.Sprintf("%032x", id), "kind": 2, "status": object{}}
				begin := now.Add(-time.Duration(id%90) * time.Second).UnixNano()
				span := with(ids, object{"spanId": fmt.Sprintf("%016x", id), "name": method + " " + route,
					"startTimeUnixNano": fmt.Sprint(begin), "endTimeUnixNano": fmt.Sprint(begin + 7e6),
					"attributes": append(attributes("http.request.method", method, "http.route", route), object{"key": "http.response.status_code", "value": object{"intValue": status}})})
				if status == "503" {
					span["status"] = object{"code": 2, "message": "no upstream"}
				}
				// A call to a database is no request.
				spans = append(spans, span, with(ids, object{"spanId": fmt.Sprintf("%016x", id<<32), "name": "SELECT", "kind": 3,
					"startTimeUnixNano": fmt.Sprint(begin), "endTimeUnixNano": fmt.Sprint(begin + 1e6)}))
				want.add([4]string{service, route, map[string]string{"GET": "read", "POST": "write"}[method], region}, map[byte]int{'2': 0, '5': 1, '4': 2}[status[0]], 1)
			}
			resources = append(resources, object{"resource": object{"attributes": attributes("service.name", service, "cloud.region", region)}, "scopeSpans": []object{{"spans": spans}}})
		}
		post(t, url+"/v1/traces", object{"resourceSpans": resources})
	}
	return want
}

func with(o, more object) object {
	o = maps.Clone(o)
	maps.Copy(o, more)
	return o
}

// Histograms of durations by status code, cumulative as SDKs make them, become requests behind the Collector's
// cumulativetodelta; a gauge beside them becomes a measurement.
func TestCollectorMetrics(t *testing.T) {
	program(t, "collector")
	at := install(t, map[string]string{
		"proto": "topic: metrics_proto\nstream: requests\ndecoder: otlp_metrics_proto\nattributes: {region: [cloud.region]}\n",
		"json":  "topic: metrics_json\nstream: gauges\ndecoder: otlp_metrics_json\nmetrics: [\"db.client.connection*\"]\n",
	})
	url := collector(t, func(address string) string { return fmt.Sprintf(collectorConfig, address, at.kafka) })
	began := time.Now().Add(-time.Minute)
	stamp := func(d time.Duration) string { return fmt.Sprint(began.Add(d).UnixNano()) }
	want := truth{}
	routes := []string{"/pay/{account}", "/refund/{account}"}
	for round := range 3 {
		at := stamp(time.Duration(round+1) * 10 * time.Second)
		var points []object
		for r, route := range routes {
			for s, status := range []string{"200", "500", "404"} {
				count := (round + 1) * (100*r + 10*s + 7) // since the beginning
				attr := append(attributes("http.request.method", "POST", "http.route", route), object{"key": "http.response.status_code", "value": object{"intValue": status}})
				points = append(points, object{"attributes": attr, "startTimeUnixNano": stamp(0), "timeUnixNano": at, "count": fmt.Sprint(count), "sum": 0.02 * float64(count),
					"explicitBounds": []float64{0.01, 0.1, 1}, "bucketCounts": []string{"0", fmt.Sprint(count), "0", "0"}})
				if round == 0 {
					continue // with initial_value: drop, the first total says nothing of when it came to be
				}
				want.add([4]string{"payments", route, "write", "eu-west-1"}, s, 100*r+10*s+7)
			}
		}
		post(t, url+"/v1/metrics", object{"resourceMetrics": []object{{
			"resource": object{"attributes": attributes("service.name", "payments", "cloud.region", "eu-west-1", "tocsin.resource", "mysql/pay/primary")},
			"scopeMetrics": []object{{"metrics": []object{
				{"name": "http.server.request.duration", "unit": "s", "histogram": object{"aggregationTemporality": 2, "dataPoints": points}},
				{"name": "db.client.connection.count", "unit": "{connection}", "gauge": object{"dataPoints": []object{{"timeUnixNano": at, "asInt": fmt.Sprint(3900 + round), "attributes": attributes("state", "used")}}}},
			}}},
		}}})
	}
	at.stored(t, fmt.Sprintf(countedCells, "metrics_proto"), want.rows())
	at.stored(t, "SELECT resource, metric, toInt64(value), attributes['state'] FROM gauges WHERE marker = 0 ORDER BY time",
		"mysql/pay/primary\tdb.client.connection.count\t3900\tused\nmysql/pay/primary\tdb.client.connection.count\t3901\tused\nmysql/pay/primary\tdb.client.connection.count\t3902\tused")
}
