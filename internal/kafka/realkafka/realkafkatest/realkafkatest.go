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
	shared = map[int]*realkafka.Cluster{} // by number of brokers
	failed = map[int]error{}
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

// Users may log in at the broker that One gives.
var Users = []realkafka.User{{Mechanism: realkafka.MechanismPlain, Name: "plain", Password: "p=1,2"},
	{Mechanism: realkafka.MechanismScram256, Name: "u256", Password: "p256"},
	{Mechanism: realkafka.MechanismScram512, Name: "u512", Password: "p512"}}

// One is a broker with all listeners that the tests of one process share; it is started at the first call. Where it
// cannot be had, the test is skipped with the reason.
func One(t testing.TB) *realkafka.Cluster {
	t.Helper()
	return share(t, realkafka.Options{Brokers: 1, Users: Users,
		Listeners: []realkafka.Listener{realkafka.TLS, realkafka.SASL, realkafka.SASLTLS}})
}

// Addr is the address at which One takes clients without TLS and login.
func Addr(t testing.TB) string {
	t.Helper()
	return One(t).Addrs(realkafka.Plain)[0]
}

// Three is a cluster of three brokers that the tests of one process share: each record is on all three, and two must have
// it. After the test, brokers that it ended or halted are brought back.
func Three(t testing.TB) *realkafka.Cluster {
	t.Helper()
	c := share(t, realkafka.Options{Brokers: 3})
	t.Cleanup(func() {
		for id := 1; id <= c.Brokers(); id++ {
			if c.Cont(id) != nil {
				_ = c.Restart(id) // if it fails too, WaitReady tells
			}
		}
		if err := c.WaitReady(context.Background()); err != nil {
			t.Errorf("bring Apache Kafka back: %v", err)
		}
	})
	return c
}

func share(t testing.TB, o realkafka.Options) *realkafka.Cluster {
	t.Helper()
	Need(t)
	mu.Lock()
	defer mu.Unlock()
	key := o.Brokers
	if shared[key] == nil && failed[key] == nil {
		o.Version = Version()
		shared[key], failed[key] = realkafka.Start(context.Background(), o)
	}
	check(t, failed[key])
	return shared[key]
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

// Stop ends the shared brokers. Call it from TestMain.
func Stop() {
	mu.Lock()
	defer mu.Unlock()
	for key, c := range shared {
		if c != nil {
			_ = c.Close() // It is killed in any case, and the tests have their results.
		}
		delete(shared, key)
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
