package kafka_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka/realkafkatest"
)

// What most producers write is framed by the Java client: idempotent, in batches of its own, compressed by its own
// libraries, and here in transactions too.
func TestFetchReadsTheJavaClientsBatches(t *testing.T) {
	cluster := realkafkatest.One(t)
	if v := realkafkatest.Version(); v != realkafka.Version {
		t.Skipf("the jars of version %s have no producer tool", v)
	}
	const n = 3000
	payloads := map[string]bool{}
	var file strings.Builder
	for i := range 500 {
		p := fmt.Sprintf("payload %d %s", i, strings.Repeat("long enough to be compressed ", i%20))
		payloads[p] = true
		fmt.Fprintln(&file, p)
	}
	path := filepath.Join(t.TempDir(), "payloads")
	must(t, os.WriteFile(path, []byte(file.String()), 0o600))
	client := newClient(t, cluster.Addrs(realkafka.Plain)[0])
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			topic := topicName(t)
			must(t, client.EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic}}))
			args := []string{"--topic", topic, "--num-records", fmt.Sprint(n), "--throughput", "-1", "--payload-file", path,
				"--producer-props", "bootstrap.servers=" + cluster.Addrs(realkafka.Plain)[0], "compression.type=" + codec, "acks=all"}
			if codec == "zstd" {
				args = append(args, "--transaction-duration-ms", "20")
			}
			if out, err := cluster.Java(t.Context(), "org.apache.kafka.tools.ProducerPerformance", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			r, err := client.ListOffsets(t.Context(), topic, 0)
			must(t, err)
			got := 0
			_, err = client.ReadRange(t.Context(), topic, 0, 0, r[0].End, func(r kafka.Record) error {
				if got++; !payloads[string(r.Value)] {
					t.Errorf("offset %d is %.60q", r.Offset, r.Value)
				}
				return nil
			})
			must(t, err)
			if got != n {
				t.Errorf("%d of %d records", got, n)
			}
		})
	}
}
