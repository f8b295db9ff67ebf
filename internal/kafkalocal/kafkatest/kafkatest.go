// Package kafkatest gives tests a Kafka broker in memory. It is for tests only.
package kafkatest

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/kafkalocal"
)

// Start runs a broker with the given topics in memory until the test ends, and returns its address.
func Start(t testing.TB, topics ...kafkalocal.Topic) string {
	t.Helper()
	return StartWith(t, kafkalocal.Options{Topics: topics}).Addr()
}

// StartWith runs a broker with the given options until the test ends.
func StartWith(t testing.TB, o kafkalocal.Options) *kafkalocal.Broker {
	t.Helper()
	b, err := kafkalocal.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("start embedded Kafka: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("embedded Kafka stopped itself: %v", err)
		}
	})
	return b
}
