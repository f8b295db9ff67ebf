package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
)

// BenchmarkFetch reads 200-byte records as fast as they come; the broker is in the same process and counts too.
func BenchmarkFetch(b *testing.B) {
	for _, codec := range []string{"none", "lz4", "zstd"} {
		b.Run(codec, func(b *testing.B) {
			addr := kafkatest.Start(b, kafkalocal.Topic{Name: "t"})
			c := newClient(b, addr, func(cfg *kafka.Config) { cfg.Compression = codec })
			recs := make([]kafka.Record, 100_000)
			for i := range recs {
				recs[i].Value = fmt.Appendf(nil, `{"time":%d,"service":"pull_requests","operation":"merge","outcome":"success",`+
					`"access":"write","account":"a%06d","latency_ms":%d,"attributes":{"region":"eu-%d","site":"iad"},"trace":"%x"}`,
					1_700_000_000_000+i, i*7919%100_000, i%900, i%4, uint64(i)*0x9e3779b97f4a7c15)
			}
			must(b, c.NewProducer().Produce(b.Context(), "t", 0, recs...))
			b.ReportAllocs()
			n, pos := 0, int64(0)
			for b.Loop() {
				res, err := c.Fetch(b.Context(), "t", 0, pos, 1<<20, time.Second)
				must(b, err)
				n += len(res.Records)
				if pos = res.NextOffset; res.CaughtUp() {
					pos = 0
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/record")
		})
	}
}
