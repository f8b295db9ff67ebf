// Package realkafkatest gives tests Apache Kafka. It is for tests only.
package realkafkatest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/tocsin-project/tocsin/internal/kafka/realkafka"
)

var (
	mu     sync.Mutex
	shared = map[string]*realkafka.Cluster{} // by version
	failed = map[string]error{}
)

// Wanted tells whether tests should run against Apache Kafka: TOCSIN_REAL_KAFKA=1.
func Wanted() bool { return os.Getenv("TOCSIN_REAL_KAFKA") == "1" }

// Version is the one that is wanted: TOCSIN_REAL_KAFKA_VERSION, or the package's.
func Version() string {
	if v := os.Getenv("TOCSIN_REAL_KAFKA_VERSION"); v != "" {
		return v
	}
	return realkafka.Version
}

// Need skips the test unless Apache Kafka is wanted.
func Need(t testing.TB) {
	t.Helper()
	if !Wanted() {
		t.Skip("Apache Kafka is not asked for: make test-kafka")
	}
}

// Addr is the address of a broker that the tests of one process share; it is started at the first call. Where it cannot
// be had, the test is skipped with the reason.
func Addr(t testing.TB) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	v := Version()
	if shared[v] == nil && failed[v] == nil {
		shared[v], failed[v] = realkafka.Start(context.Background(), realkafka.Options{Version: v})
	}
	check(t, failed[v])
	return shared[v].Addrs(realkafka.Plain)[0]
}

// Start runs a cluster of the test's own until it ends.
func Start(t testing.TB, o realkafka.Options) *realkafka.Cluster {
	t.Helper()
	Need(t)
	if o.Version == "" {
		o.Version = Version()
	}
	c, err := realkafka.Start(context.Background(), o)
	check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for id := 1; id <= c.Brokers(); id++ {
				log := c.Log(id)
				t.Logf("broker %d printed at last:\n%s", id, log[max(0, len(log)-4000):])
			}
		}
		if err := c.Close(); err != nil {
			t.Errorf("close Apache Kafka: %v", err)
		}
	})
	return c
}

// Stop ends the shared broker. Call it from TestMain.
func Stop() {
	mu.Lock()
	defer mu.Unlock()
	for v, c := range shared {
		if c != nil {
			_ = c.Close() // It is killed in any case, and the tests have their results.
		}
		delete(shared, v)
	}
}

// check skips where Kafka cannot be had, and fails where it can and does not start.
func check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, realkafka.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
