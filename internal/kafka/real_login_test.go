package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka/realkafkatest"
)

// Unlike the embedded broker, Apache Kafka says what is wrong with a login: the error must say it on, at once, and nobody
// may take it for something that passes.
func TestApacheKafkaTLSAndEveryLogin(t *testing.T) {
	cluster := realkafkatest.One(t)
	topic := topicName(t)
	must(t, newClient(t, cluster.Addr(1, realkafka.Plain)).EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic}}))
	led(t, cluster.Addr(1, realkafka.Plain), topic, 1)
	overTLS := func(cfg *kafka.Config) { cfg.TLS = &kafka.TLSConfig{CAFile: cluster.CAFile()} }
	t.Run("TLS", func(t *testing.T) {
		works(t, newClient(t, cluster.Addr(1, realkafka.TLS), overTLS), topic)
		err := newClient(t, cluster.Addr(1, realkafka.TLS), func(cfg *kafka.Config) { cfg.TLS = &kafka.TLSConfig{} }).Ping(t.Context())
		if kafka.ReasonOf(err) != kafka.ReasonAuthentication || kafka.Retryable(err) {
			t.Errorf("unknown certificate authority: %v", err)
		}
	})
	for _, u := range realkafkatest.Users {
		for _, l := range []realkafka.Listener{realkafka.SASL, realkafka.SASLTLS} {
			t.Run(fmt.Sprintf("%s over %s", u.Mechanism, l), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "password")
				edit := func(cfg *kafka.Config) {
					if l == realkafka.SASLTLS {
						overTLS(cfg)
					}
					cfg.SASL = &kafka.SASLConfig{Mechanism: u.Mechanism, Username: u.Name, PasswordFile: file}
				}
				must(t, os.WriteFile(file, []byte("mistaken"), 0o600))
				refuses(t, newClient(t, cluster.Addr(1, l), edit), topic)
				must(t, os.WriteFile(file, []byte(u.Password), 0o600))
				works(t, newClient(t, cluster.Addr(1, l), edit), topic)
			})
		}
	}
}

// works does with a client what the loops do.
func works(t *testing.T, c *kafka.Client, topic string) {
	t.Helper()
	must(t, c.Ping(t.Context()))
	r, err := c.ListOffsets(t.Context(), topic, 0)
	must(t, err)
	must(t, c.NewProducer().Produce(t.Context(), topic, 0, values(0, 1)...))
	if got := readAll(t, c, topic, 0, r[0].End, r[0].End+1); got[r[0].End] != "v0" {
		t.Errorf("read %v", got)
	}
	gen := run(t, c, "g-"+t.Name(), topic, nil).owns(t, topic, 1)
	must(t, c.Commit(t.Context(), gen, topic, 0, 1, "m"))
}

// refuses checks that every operation ends soon, with one error that says it is the login and shows no password.
func refuses(t *testing.T, c *kafka.Client, topic string) {
	t.Helper()
	for what, try := range map[string]func(context.Context) error{
		"ping":    c.Ping,
		"produce": func(ctx context.Context) error { return c.NewProducer().Produce(ctx, topic, 0, values(0, 1)...) },
		"fetch":   func(ctx context.Context) error { _, err := c.Fetch(ctx, topic, 0, 0, 0, 0); return err },
		"load":    func(ctx context.Context) error { _, err := c.LoadAll(ctx, topic); return err },
		"ensure":  func(ctx context.Context) error { return c.EnsureTopics(ctx, []kafka.TopicSpec{{Name: topic}}) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		began := time.Now()
		err := try(ctx)
		cancel()
		switch {
		case err == nil:
			t.Errorf("%s with a wrong password works", what)
		case kafka.ReasonOf(err) != kafka.ReasonAuthentication, kafka.Retryable(err):
			t.Errorf("%s: reason %s, to be tried again: %v: %v", what, kafka.ReasonOf(err), kafka.Retryable(err), err)
		case strings.Contains(err.Error(), "mistaken"):
			t.Errorf("%s shows the password: %v", what, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s to fail", what, took)
		}
	}
}

// A member whose password is wrong says so once, goes on trying at its own pace, and joins when the password is mended.
func TestApacheKafkaMemberWithAWrongPassword(t *testing.T) {
	cluster, user := realkafkatest.One(t), realkafkatest.Users[2]
	topic := topicName(t)
	must(t, newClient(t, cluster.Addr(1, realkafka.Plain)).EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic}}))
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("mistaken"), 0o600))
	var out lines
	c, err := kafka.NewClient(kafka.Config{Brokers: []string{cluster.Addr(1, realkafka.SASL)}, MetadataTTL: 100 * time.Millisecond,
		SASL: &kafka.SASLConfig{Mechanism: user.Mechanism, Username: user.Name, PasswordFile: file}},
		slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})), nil)
	must(t, err)
	t.Cleanup(c.Close)
	r := run(t, c, "g-"+topic, topic, nil)
	eventually(t, "a word about the login", func() bool { return strings.Contains(out.String(), "SASL") })
	if s := out.String(); strings.Count(s, "\n") > 1 || strings.Contains(s, "mistaken") {
		t.Errorf("logged:\n%s", s)
	}
	must(t, os.WriteFile(file, []byte(user.Password), 0o600))
	r.owns(t, topic, 1)
}

type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
