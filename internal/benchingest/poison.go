package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tocsin-project/tocsin/internal/scenario/wire"
)

// poisoner makes records that cannot be counted, each kind in turn. Each is one dead letter.
type poisoner struct {
	r       *rand.Rand
	made    int
	letters map[string]int64 // by reason
}

func newPoisoner() *poisoner {
	return &poisoner{r: rand.New(rand.NewPCG(2, 0xbad)), letters: map[string]int64{}}
}

// poisons are the kinds: the reason that their dead letter has to have, and a record made from the one before it.
var poisons = []struct {
	reason string
	make   func(r *rand.Rand, before []byte, at int64) []byte
}{
	{"malformed", func(_ *rand.Rand, before []byte, _ int64) []byte { return before[:len(before)-7] }},
	{"malformed", func(r *rand.Rand, _ []byte, _ int64) []byte { return noise(r, 64<<10) }},
	{"malformed", func(r *rand.Rand, _ []byte, at int64) []byte { return logLines(r, at, 32<<10) }},
	{"empty", func(*rand.Rand, []byte, int64) []byte { return []byte{} }},
	{"too_large", func(r *rand.Rand, _ []byte, at int64) []byte { return logLines(r, at, 1<<20+1) }},
	{"missing_field", func(_ *rand.Rand, _ []byte, at int64) []byte { return lone("", 16, at) }},
	{"missing_field", func(*rand.Rand, []byte, int64) []byte { return lone("orders", 16, 0) }},
	{"invalid_value", func(_ *rand.Rand, _ []byte, at int64) []byte { return lone("orders", 5, at) }},
	{"too_old", func(_ *rand.Rand, _ []byte, at int64) []byte { return lone("orders", 16, at-10*24*3600e9) }},
	{"future", func(_ *rand.Rand, _ []byte, at int64) []byte { return lone("orders", 16, at+24*3600e9) }},
}

// next is a record of the next kind.
func (p *poisoner) next(before []byte, at int64) []byte {
	k := poisons[p.made%len(poisons)]
	p.made++
	p.letters[k.reason]++
	return k.make(p.r, before, at)
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

// logLines are what somebody writes to the wrong topic, with what has to be masked.
func logLines(r *rand.Rand, at int64, n int) []byte {
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, `{"time":%d,"level":"warn","message":"cannot sign in","user":"user%d@example.com","ip":"10.%d.%d.7","authorization":"Bearer %016x%016x"}`+"\n",
			at/1e6, r.IntN(100_000), r.IntN(256), r.IntN(256), r.Uint64(), r.Uint64())
	}
	return b
}

// lone is a record of one span, of a service if it has one.
func lone(service string, traceID int, end int64) []byte {
	span := protowire.AppendBytes([]byte{0x0a}, make([]byte, traceID))
	span = protowire.AppendString(append(span, 0x2a), "GET /x")
	span = append(span, 0x30, 2)
	if end != 0 {
		span = binary.LittleEndian.AppendUint64(append(span, 0x41), uint64(end))
	}
	var rs []byte
	if service != "" {
		rs = protowire.AppendBytes([]byte{0x0a}, wire.AppendText([]byte{0x0a}, "service.name", service))
	}
	rs = protowire.AppendBytes(append(rs, 0x12), protowire.AppendBytes([]byte{0x12}, span))
	return protowire.AppendBytes([]byte{0x0a}, rs)
}

// poisoned measures a workload with poison against the same spans without, in turn.
func (b *bench) poisoned(ctx context.Context, w workload, addr, lib string) error {
	clean := w
	clean.Name, clean.Poison = w.Name+"_clean", 0
	var all [2][]result
	var configs [2]config
	var truths [2]truth
	for i, w := range []workload{clean, w} {
		var err error
		if configs[i], truths[i], _, err = fill(ctx, addr, w); err != nil {
			return err
		}
	}
	for i := range b.runs {
		for j := range all {
			r, err := b.ingest(ctx, configs[j], truths[j], lib, i)
			if err != nil {
				return err
			}
			all[j] = append(all[j], r)
		}
	}
	n := float64(w.Spans)
	cpu := func(r result) float64 { return float64(r.CPU) / 1e3 / n }
	wall := func(r result) float64 { return float64(r.Wall) / 1e3 / n }
	fmt.Printf("workload %s: %d spans in %d records, and a broken one for every %d; median of %d:\n", w.Name, w.Spans, sum(configs[0].Ends), w.Poison, b.runs)
	for j, name := range []string{"clean", "poison"} {
		fmt.Printf("  %-11s %9.3f CPU µs a span, wall %.3f, ratio %.2f and %.2f, peak %.0f MB, load %.1f\n", name, median(all[j], cpu), median(all[j], wall),
			median(all[j], cpu)/median(all[0], cpu), median(all[j], wall)/median(all[0], wall), median(all[j], func(r result) float64 { return float64(r.PeakBytes) / 1e6 }),
			median(all[j], func(r result) float64 { return r.LoadAverage }))
	}
	fmt.Printf("  each broken record is one dead letter: %v; totals equal the truth in each run\n", configs[1].Letters)
	return nil
}

// compareLetters holds what is stored of dead letters to what was written.
func compareLetters(ctx context.Context, engine string, want map[string]int64) error {
	rows, err := query(ctx, engine, "SELECT reason, toString(count()) FROM dead_letters GROUP BY reason")
	if err != nil {
		return err
	}
	var wrong []string
	got := map[string]int64{}
	for _, r := range rows {
		got[r[0]], _ = strconv.ParseInt(r[1], 10, 64)
		if got[r[0]] != want[r[0]] {
			wrong = append(wrong, fmt.Sprintf("%s: %d instead of %d", r[0], got[r[0]], want[r[0]]))
		}
	}
	if len(wrong) > 0 || len(got) != len(want) {
		return fmt.Errorf("dead letters: %s; %v are right", strings.Join(wrong, ", "), want)
	}
	return nil
}
