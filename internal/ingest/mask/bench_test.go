package mask

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// payloads are what dead letters hold, each of about 68 KiB: what is masked at most of one.
func payloads() map[string][]byte {
	r := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 68<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var spans, logs, tickets strings.Builder
	for spans.Len() < 68<<10 { // as protobuf has them: texts between lengths and ids
		id := make([]byte, 24)
		for i := range id {
			id[i] = byte(r.Uint32())
		}
		fmt.Fprintf(&spans, "\n\x10%s\x12\x08http.request.method\x12\x05\n\x03GETJ\x24\n\x09url.path\x12\x17\n\x15/api/v1/orders/%dJ\x1f\n\x14network.peer.address\x12\x0b\n\x0910.%d.%d.%d\x12\nenduser.id\nacct-%05dMozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 https://opentelemetry.io/schemas/1.37.0",
			id, r.IntN(1_000_000), r.IntN(4), r.IntN(256), r.IntN(256), r.IntN(50_000))
	}
	for i := 0; logs.Len() < 68<<10; i++ {
		fmt.Fprintf(&logs, "{\"time\":%d,\"service\":\"checkout\",\"operation\":\"/cart/{id}\",\"outcome\":\"failure\",\"account\":\"a%d@example.com\",\"token\":\"ghp_abcdefghijklmnopqrstuvwxyz%06d\"}\n", 1757752980000+i, i, i)
	}
	for tickets.Len() < 68<<10 {
		tickets.WriteString("我的手机13812345678收不到验证码，请联系zhang.wei@example.com。card 4111 1111 1111 1111, call +49 (170) 123-4567 now. ")
	}
	return map[string][]byte{"noise": noise, "spans": []byte(spans.String()), "logs": []byte(logs.String()), "tickets": []byte(tickets.String()),
		"digits": []byte(strings.Repeat("1757752980000 ", 5000)), "hex": []byte(strings.Repeat("5b8efff798038103d269b633813fc60c,", 2200))}
}

// BenchmarkPayloads is the largest part of what a dead letter costs.
func BenchmarkPayloads(b *testing.B) {
	var m Masker
	for name, p := range payloads() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				m.Payload(p, 64<<10)
			}
		})
	}
}
