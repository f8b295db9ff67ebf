package ingest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest/mask"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestDecide(t *testing.T) {
	at := func(incarnation uint32, end int64) Position {
		return Position{Found: true, Incarnation: incarnation, End: end}
	}
	res := func(incarnation uint32, end int64) *reservation {
		return &reservation{Incarnation: incarnation, End: end}
	}
	tests := map[string]struct {
		k    knowledge
		want string
	}{
		"never read":                              {knowledge{committed: -1, end: 10}, "first"},
		"decided, nothing stored":                 {knowledge{committed: 4, end: 10}, "0 at 4"},
		"reserved, nothing stored":                {knowledge{committed: 4, reservation: res(0, 7), end: 10}, "0 at 4, replay to 7"},
		"as left":                                 {knowledge{ledger: at(2, 7), committed: 7, end: 10}, "2 at 7"},
		"reserved":                                {knowledge{ledger: at(2, 4), committed: 4, reservation: res(2, 7), end: 10}, "2 at 4, replay to 7"},
		"stored, not said":                        {knowledge{ledger: at(2, 7), committed: 4, reservation: res(2, 7), end: 10}, "2 at 4, replay to 7"},
		"stored beyond what is reserved":          {knowledge{ledger: at(2, 9), committed: 4, reservation: res(2, 7), end: 10}, "2 at 9, moved"},
		"stored less than is said":                {knowledge{ledger: at(2, 3), committed: 4, reservation: res(2, 7), end: 10}, "2 at 3, moved"},
		"commit ahead":                            {knowledge{ledger: at(2, 3), committed: 5, end: 10}, "2 at 3, moved"},
		"no commit":                               {knowledge{ledger: at(2, 3), committed: -1, end: 10}, "2 at 3, moved"},
		"shorter log":                             {knowledge{ledger: at(2, 7), committed: 7, start: 1, end: 6}, "3 at 1, anew"},
		"another record":                          {knowledge{ledger: at(2, 7), committed: 7, end: 10, differs: true}, "3 at 0, anew"},
		"another record, old reservation":         {knowledge{ledger: at(2, 7), committed: 7, reservation: res(2, 9), end: 10, differs: true}, "3 at 0, anew"},
		"reserved beyond the log":                 {knowledge{ledger: at(2, 7), committed: 7, reservation: res(2, 12), end: 10}, "2 at 7, moved"},
		"reserved beyond the log, nothing stored": {knowledge{committed: 0, reservation: res(0, 12), end: 10}, "1 at 0, anew"},
		"reserved in a new life":                  {knowledge{ledger: at(2, 7), committed: 0, reservation: res(3, 5), end: 6}, "3 at 0, replay to 5"},
		"reserved in a new life, and anew again":  {knowledge{ledger: at(2, 7), committed: 0, reservation: res(3, 5), end: 4}, "4 at 0, anew"},
		"reservation of an earlier life":          {knowledge{ledger: at(2, 7), committed: 3, reservation: res(1, 5), end: 10}, "2 at 7, moved"},
		"deleted below":                           {knowledge{ledger: at(2, 7), committed: 7, start: 9, end: 10}, "2 at 7"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := decide(tt.k)
			got := fmt.Sprintf("%d at %d", b.incarnation, b.offset)
			if b.first {
				got = "first"
			}
			if b.replay != nil {
				got += fmt.Sprintf(", replay to %d", b.replay.End)
			}
			if b.kind != "" {
				got += ", " + string(b.kind)
			}
			if got != tt.want || (b.kind != "") != (b.notice != "") {
				t.Errorf("%s (%s), want %s", got, b.notice, tt.want)
			}
		})
	}
}

func TestReservationMetadata(t *testing.T) {
	r := reservation{End: 7, Incarnation: 3, Revision: "abc", Watermark: 1789288980123, ReadAt: 1789288980124}
	if got, ok := parseReservation(5, r.String()); !ok || got != r {
		t.Errorf("%s became %+v", r, got)
	}
	for _, metadata := range []string{"", "not ours", `{"end":5}`, `{"incarnation":3}`, "[]"} {
		if _, ok := parseReservation(5, metadata); ok {
			t.Errorf("%q reserves something", metadata)
		}
	}
	for metadata, want := range map[string]bool{"": true, "not ours": true, `{"end":0,"incarnation":3}`: false} {
		if foreign, _ := whose(5, metadata); foreign != want {
			t.Errorf("%q is foreign: %v", metadata, foreign)
		}
	}
	r = reservation{End: 1<<63 - 1, Incarnation: 1<<32 - 1, Revision: strings.Repeat("f", 12), Watermark: 1 << 62, ReadAt: 1 << 62}
	if len(r.String()) > 4096 {
		t.Error("longer than metadata may be")
	}
}

func TestConfig(t *testing.T) {
	var c Config
	if err := strictyaml.Decode("c.yaml", []byte("{}"), &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil || c.Start.Back != time.Hour || c.MaxRows != 200_000 {
		t.Errorf("defaults: %+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"start: beginning":      "",
		"start: 3d":             "",
		"start: yesterday":      `c.yaml:1:8: "start": "yesterday" is neither a duration nor beginning nor end`,
		"clock: sun":            `c.yaml:1:8: "clock": unknown clock "sun"`,
		"max_rows: 10":          "c.yaml:1:11: max_rows must be above 50000",
		"max_rows: 300000":      "at most 200000",
		"min_linger: 10s":       "min_linger must be positive and at most max_linger",
		"inserts_per_second: 0": "must be positive",
		"max_memory: 1MiB":      "max_memory must be at least max_batch",
		"retry_min: 1m":         "retry_min must be positive and at most retry_max",
	} {
		var c Config
		err := strictyaml.Decode("c.yaml", []byte(text), &c)
		if err == nil {
			err = c.Validate()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What one record may become fits into what one batch may hold.
func TestReaderBoundsARecord(t *testing.T) {
	many := decoderFunc(func(_ Record, emit func(signal.Event), reject func(DeadLetter)) {
		for range MaxEvents + 10 {
			emit(&signal.Gauge{Time: time.Unix(1000, 0)})
		}
		for i := range 100 {
			reject(DeadLetter{Reason: ReasonInvalid, Detail: fmt.Sprint("no ", i), Payload: []byte("x")})
		}
	})
	src := Source{Pipeline: testPipeline(t), NewDecoder: func() Decoder { return many }, Masker: &mask.Masker{}}
	events, letters := 0, []DeadLetter{}
	r := src.Reader()
	for range 2 { // nothing of the first record is left for the second
		events, letters = 0, nil
		r.Read(Record{Offset: 7, Time: time.Unix(1000, 0), Value: []byte("v")}, time.Unix(1000, 0), func(signal.Event) { events++ }, func(d DeadLetter) { letters = append(letters, d) })
	}
	if events != MaxEvents || len(letters) != MaxDeadLetters+1 || r.Rejected() != 101 {
		t.Errorf("%d events, %d dead letters, %d rejected", events, len(letters), r.Rejected())
	}
	if last := letters[len(letters)-1]; !strings.Contains(last.Detail, "and 84 more") || last.Offset != 7 {
		t.Errorf("%+v", last)
	}
	for _, d := range letters {
		if d.Reason == ReasonTooLarge {
			return
		}
	}
	t.Error("nothing says that there were too many events")
}

type decoderFunc func(Record, func(signal.Event), func(DeadLetter))

func (f decoderFunc) Decode(r Record, emit func(signal.Event), reject func(DeadLetter)) {
	f(r, emit, reject)
}

// Records without a timestamp are judged by the clock when the batch began.
func TestRecordWithoutTimestamp(t *testing.T) {
	one := decoderFunc(func(_ Record, emit func(signal.Event), _ func(DeadLetter)) {
		emit(&signal.Gauge{Time: time.Unix(1_000_000_000, 0)})
	})
	src := Source{Pipeline: testPipeline(t), NewDecoder: func() Decoder { return one }, Masker: &mask.Masker{}}
	n := 0
	src.Reader().Read(Record{Time: time.UnixMilli(-1), Value: []byte("v")}, time.Unix(1_000_000_060, 0), func(signal.Event) { n++ }, func(d DeadLetter) { t.Errorf("%+v", d) })
	if n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestTokens(t *testing.T) {
	b := Batch{Range: Range{Topic: "otlp_spans", Incarnation: 2, Partition: 3, Start: 10, End: 20}}
	if got := b.Token(); got != "otlp_spans/2/3/10-20" {
		t.Error(got)
	}
	b.Marker.Heartbeat, b.Marker.Clock = true, time.UnixMilli(1789288980123)
	if got := b.Token(); got != "otlp_spans/2/3/10-20/heartbeat/1789288980123" {
		t.Error(got)
	}
}

func TestCellsAreInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := 1; n < 400; n++ {
		b := &batch{}
		for _, i := range r.Perm(n) {
			b.cells = append(b.cells, Cell{bucket: int64(i%3) * 10, key: NewKey(signal.Key{Path: signal.Path{Service: string(rune('a' + i))}}, 0), retries: uint32(i)})
		}
		want := slices.Clone(b.cells)
		slices.SortFunc(want, func(x, y Cell) int { return cmp.Or(cmp.Compare(x.bucket, y.bucket), cmp.Compare(x.key.ID, y.key.ID)) })
		if b.sortCells(); !reflect.DeepEqual(b.cells, want) {
			t.Fatalf("%d cells are not in order", n)
		}
	}
}
