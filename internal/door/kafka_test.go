package door_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/door"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/pipelines"
)

type producer struct{ p *kafka.Producer }

func (p producer) Produce(ctx context.Context, topic string, value []byte) error {
	return p.p.Produce(ctx, topic, kafka.ByKey, kafka.Record{Value: value})
}

// What Prometheus posts comes out of the topic as alerts, through the shipped pipeline.
func TestFromHTTPThroughKafkaToEvents(t *testing.T) {
	const topic = "tocsin.alerts"
	c := kafka.Config{Brokers: []string{kafkatest.Start(t, kafkalocal.Topic{Name: topic, Partitions: 1})}}
	c.SetDefaults()
	client, err := kafka.NewClient(c, slog.New(slog.DiscardHandler), kafka.NewMetrics(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	set, err := pipeline.Load(pipelines.FS)
	if err != nil {
		t.Fatal(err)
	}
	conf := door.Config{Pipelines: []door.Sender{{Pipeline: "alerts", Open: true}}, Alerts: "alerts"}
	conf.SetDefaults()
	d, err := door.New(door.Options{Config: conf, Pipelines: set, Producer: producer{client.NewProducer()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	d.Register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	now := time.Now().UTC().Truncate(time.Second)
	stamp := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	body := `[{"labels":{"alertname":"A","service":"issues"},"startsAt":"` + stamp(-time.Minute) + `","endsAt":"` + stamp(4*time.Minute) + `","generatorURL":"http://p/"},
		{"labels":{"alertname":"A","service":"pages"},"startsAt":"` + stamp(-time.Hour) + `","endsAt":"` + stamp(-time.Minute) + `"}]`
	res, err := server.Client().Post(server.URL+"/api/v2/alerts", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d", res.StatusCode)
	}
	source, err := decode.Source(set.ByTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := kafka.IngestLog(client).Fetch(t.Context(), ingest.TopicPartition{Topic: topic}, 0, 1<<20, 5*time.Second)
	if err != nil || len(fetched.Records) != 1 {
		t.Fatalf("%d records, %v", len(fetched.Records), err)
	}
	var got []string
	source.Reader().Read(fetched.Records[0], time.Now(), func(e signal.Event) {
		a := e.(*signal.Alert)
		got = append(got, a.Status+" "+a.Labels.Get("service"))
	}, func(l ingest.DeadLetter) { t.Errorf("%s: %s", l.Reason, l.Detail) })
	if strings.Join(got, ", ") != "firing issues, resolved pages" {
		t.Errorf("%v", got)
	}
	// Where there is no broker any more, the sender is told to come again.
	client.Close()
	res, err = server.Client().Post(server.URL+"/ingest/alerts", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d", res.StatusCode)
	}
}
