package senderstest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/door"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
)

// tocsin is what senders see of an installation, and the tables behind it.
type tocsin struct {
	kafka, door          string
	clickhouse, database string
	loop                 *ingest.Loop
}

type producer struct{ p *kafka.Producer }

var _ door.Producer = producer{}

func (p producer) Produce(ctx context.Context, topic string, value []byte) error {
	return p.p.Produce(ctx, topic, kafka.ByKey, kafka.Record{Value: value})
}

// token is what senders prove themselves with at the door.
const token = "a-token-for-senders"

// install runs the ingest loop and the door for pipelines, by name.
func install(t *testing.T, pipelines map[string]string) *tocsin {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range pipelines {
		files[name+".yaml"] = &fstest.MapFile{Data: []byte("name: " + name + "\n" + text)}
	}
	set, err := pipeline.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	var sources []ingest.Source
	var topics []kafkalocal.Topic
	opened := door.Config{}
	opened.SetDefaults()
	secret := file(t, "token", token)
	for _, p := range set.Pipelines {
		s, err := decode.Source(p)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, s)
		topics = append(topics, kafkalocal.Topic{Name: p.AllTopics()[0], Partitions: 2})
		opened.Pipelines = append(opened.Pipelines, door.Sender{Pipeline: p.Name, TokenFiles: []string{secret}})
		if p.Name == "prometheus" {
			opened.Alerts = p.Name
		}
	}
	at := &tocsin{kafka: kafkatest.Start(t, topics...)}
	at.clickhouse, at.database = chlocaltest.NewDatabase(t)
	logger := slog.New(slog.DiscardHandler)
	db, err := clickhouse.Open(clickhouse.Config{Addresses: []string{at.clickhouse}, Database: at.database}, logger, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kc := kafka.Config{Brokers: []string{at.kafka}}
	kc.SetDefaults()
	client, err := kafka.NewClient(kc, logger, kafka.NewMetrics(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	group, err := client.NewGroup(kafka.GroupConfig{ID: "tocsin", Topics: set.Topics()})
	if err != nil {
		t.Fatal(err)
	}
	var cfg ingest.Config
	cfg.SetDefaults()
	at.loop, err = ingest.New(cfg, ingest.Deps{Log: kafka.IngestLog(client), Group: kafka.IngestGroup(group), Store: clickhouse.NewStore(db),
		Sources: sources, Clock: ingest.NewClock(cfg.Clock, nil), Logger: logger, Metrics: ingest.NewMetrics(nil)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- at.loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	d, err := door.New(door.Options{Config: opened, Pipelines: set, Producer: producer{client.NewProducer()}, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	d.Register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at.door = strings.TrimPrefix(server.URL, "http://")
	return at
}

// query gives the rows of an answer, their columns parted by tabs.
func (at *tocsin) query(t *testing.T, sql string) string {
	t.Helper()
	q := url.Values{"database": {at.database}, "default_format": {"TSV"}}
	res, err := http.Post("http://"+at.clickhouse+"/?"+q.Encode(), "text/plain", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", sql, res.StatusCode, err, body)
	}
	return strings.TrimSpace(string(body))
}

// stored waits until a query answers what is expected.
func (at *tocsin) stored(t *testing.T, sql, want string) {
	t.Helper()
	end := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		got := at.query(t, sql)
		if got == want {
			break
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("stored is\n%s\nnot\n%s\n%+v", got, want, at.loop.Health())
		}
	}
	if letters := at.query(t, "SELECT topic, reason, detail FROM dead_letters"); letters != "" {
		t.Errorf("dead letters:\n%s", letters)
	}
}
