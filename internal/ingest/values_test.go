package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
)

// dictionary keeps one pipeline's values in memory: of several changes of one number the first stays.
type dictionary struct {
	mu      sync.Mutex
	changes []ingest.Admission
	failing int
}

func (d *dictionary) Admitted(_ context.Context, _ string, after uint64) (out []ingest.Admission, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.changes {
		if c.Version > after {
			out = append(out, c)
		}
	}
	return out, nil
}

func (d *dictionary) Admit(_ context.Context, _ string, version uint64, changes []ingest.Admission) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failing > 0 {
		d.failing--
		return errors.New("down")
	}
	if !slices.ContainsFunc(d.changes, func(c ingest.Admission) bool { return c.Version == version }) {
		d.changes = append(d.changes, changes...)
	}
	return nil
}

func limited(t *testing.T, values, operations int) *world {
	w := newWorld(t, nil, source(t, "requests", "r", "json", fmt.Sprintf("limits: {values: %d, operations: %d}\n", values, operations)))
	w.kafka.CreateTopic("r", 1)
	w.values = &dictionary{}
	return w
}

// seen sums requests by operation and client.
func (w *world) seen() map[string]uint64 {
	out := map[string]uint64{}
	for _, b := range w.data() {
		for i := range b.Cells {
			c := b.Cells[i].Signal()
			out[c.Key.Operation+" "+c.Key.Attributes.String()] += c.Total()
		}
	}
	return out
}

func call(w *world, operation, client string, n int) {
	w.kafka.Produce("r", 0, time.Now(), fmt.Appendf(nil, `{"time":%d,"service":"s","operation":%q,"outcome":"failure","count":%d,"attributes":{"client":%q,"region":"iad"}}`,
		time.Now().UnixMilli(), operation, n, client))
}

func TestRareValuesAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limited(t, 2, 3)
		w.values.(*dictionary).failing = 1
		r := w.start(1, peace, nil)
		call(w, "a", "rare", 1)
		call(w, "a", "often", 7)
		call(w, "a", "more often", 9)
		for i := range 5 {
			call(w, fmt.Sprint("x", string(rune('a'+i))), "often", 10-i)
		}
		advance(5 * time.Second)
		call(w, "xe", "new", 4) // too late
		call(w, "a", "often", 1)
		advance(5 * time.Second)
		h := r.loop.Health()
		r.stop(t)
		got := w.seen()
		want := map[string]uint64{
			"a client=often,region=iad": 8, "a client=more often,region=iad": 9, "a client=__other__,region=iad": 1,
			"xa client=often,region=iad": 10, "xb client=often,region=iad": 9, "__other__ client=often,region=iad": 8 + 7 + 6, "__other__ client=__other__,region=iad": 4,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("counted %v\nwant    %v", got, want)
		}
		told := map[string]bool{}
		for _, n := range h.Notices {
			if n.Kind == ingest.NoticeValues {
				told[strings.Fields(n.Text)[0]] = true
			}
		}
		if len(told) != 2 {
			t.Errorf("notices %+v", h.Notices)
		}
		if batches := w.data(); batches[0].Marker.Rows == 0 && len(batches[0].Cells) == 0 {
			t.Error("nothing is stored")
		}
	})
}

// A reserved range is counted by the dictionary that its reservation names, although there is room by now.
func TestReplaysCountByTheirDictionary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limited(t, 10, 10)
		v := func(version uint64, attribute, value string) ingest.Admission {
			return ingest.Admission{Version: version, Value: ingest.Value{Service: "s", Attribute: attribute, Value: value}}
		}
		w.values = &dictionary{changes: []ingest.Admission{v(1, "", "a"), v(1, "region", "iad"), v(1, "client", "old"), v(2, "client", "new")}}
		call(w, "a", "new", 1)
		call(w, "a", "old", 1)
		call(w, "a", "new", 1)
		w.kafka.SetCommit("r", 0, 0, `{"end":2,"incarnation":0,"values":1,"read_at":946684800000}`)
		r := w.start(1, peace, nil)
		advance(20 * time.Second)
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-2", "0/2-3")
		if got := w.seen(); got["a client=__other__,region=iad"] != 1 || got["a client=old,region=iad"] != 1 || got["a client=new,region=iad"] != 1 {
			t.Errorf("counted %v", got)
		}
	})
}

// Many processes that die and admit values at once: what is stored twice is the same, and all of it adds up.
func TestLimitsInAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *ingest.Config) { c.FetchBytes = 2 << 10 }, source(t, "requests", "r", "json", "limits: {values: 3, operations: 0}\n"))
		w.store.Window = time.Hour
		w.kafka.CreateTopic("r", 3)
		w.values = &dictionary{}
		var all []*running
		for i := range uint64(3) {
			all = append(all, w.start(i+1, storm, nil))
		}
		const n = 600
		for i := range n {
			w.kafka.Produce("r", int32(i%3), time.Now(), fmt.Appendf(nil, `{"time":%d,"service":"s","operation":"o","outcome":"success","attributes":{"client":"c%d"}}`, time.Now().UnixMilli(), i%7))
			if i%10 == 0 {
				advance(3 * time.Second)
			}
			for j, r := range all {
				if r.process.Dead() {
					<-r.done
					all[j] = w.start(uint64(100+i), storm, nil)
				}
			}
		}
		for _, r := range all {
			r.process.Calm()
		}
		for range 400 {
			advance(time.Second)
			for j, r := range all {
				if r.process.Dead() {
					<-r.done
					all[j] = w.start(uint64(1000+j), ingesttest.Chaos{}, nil)
				}
			}
		}
		for _, r := range all {
			r.stop(t)
		}
		got, total := w.seen(), uint64(0)
		for _, v := range got {
			total += v
		}
		if total != n || len(got) != 4 {
			t.Errorf("%d of %d counted, as %v", total, n, got)
		}
	})
}
