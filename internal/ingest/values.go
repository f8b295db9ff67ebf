package ingest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Value is an attribute's value of a service, or without an attribute one of its operations.
type Value struct{ Service, Attribute, Value string }

// Admission is one change of a pipeline's dictionary of values.
type Admission struct {
	Version uint64 // counted from 1; changes of one version were made together
	Value
	Retired bool // the value is no longer admitted
}

// Values keeps dictionaries of the values that are counted by their own name. internal/clickhouse implements it.
type Values interface {
	// Admitted reads the changes after a version, in order.
	Admitted(ctx context.Context, pipeline string, after uint64) ([]Admission, error)
	// Admit stores the changes as a version, unless there is one of that number: of several that store it one stays, and
	// whoever wants to know which reads it.
	Admit(ctx context.Context, pipeline string, version uint64, changes []Admission) error
}

const (
	// valuesForgotten is for how long a value must not have been seen to make room for another.
	valuesForgotten = 24 * time.Hour
	// valuesBlind is for how long nothing may be read at all before what is seen is watched anew.
	valuesBlind = 6 * time.Hour
	// valuesSeen is how often it is noted that a value is still seen.
	valuesSeen = time.Hour
	// maxAdmitted bounds the values of one version.
	maxAdmitted = 10_000
)

// OtherValue is counted in the place of values that are too many.
const OtherValue = "__other__"

// scope is what has a limit of its own.
type scope struct{ service, attribute string }

// dictionary is one pipeline's, shared by its partitions.
type dictionary struct {
	mu      sync.Mutex
	version uint64
	turns   map[Value][]uint64 // versions in which a value was admitted, retired, admitted again…
	counts  map[scope]int      // admitted now
	seen    map[Value]time.Time
	began   time.Time // since when it is known what is seen
	newest  time.Time // of the batches that were seen
	full    map[scope]bool
}

func newDictionary() *dictionary {
	return &dictionary{turns: map[Value][]uint64{}, counts: map[scope]int{}, seen: map[Value]time.Time{}, full: map[scope]bool{}}
}

// admitted tells whether a value counts by its own name at a version.
func (d *dictionary) admitted(v Value, version uint64) bool {
	n := 0
	for _, at := range d.turns[v] {
		if at <= version {
			n++
		}
	}
	return n%2 == 1
}

// learn takes up changes that are newer than what is known.
func (d *dictionary) learn(changes []Admission) {
	for _, c := range changes {
		s := scope{c.Service, c.Attribute}
		if now := len(d.turns[c.Value])%2 == 1; now == c.Retired {
			d.turns[c.Value] = append(d.turns[c.Value], c.Version)
			if d.counts[s]++; c.Retired {
				d.counts[s] -= 2
			}
		}
		d.version = max(d.version, c.Version)
	}
}

// watch notes that a batch begins. Who has read nothing for long, because there was nothing, or others read it, or it
// takes over what was reserved long ago, does not know which values are gone.
func (d *dictionary) watch(at time.Time) {
	if at.Sub(d.newest) > valuesBlind {
		d.began = at
	}
	if at.After(d.newest) {
		d.newest = at
	}
}

// valueLimit is how many values a scope may have; 0 is no limit.
func valueLimit(p *pipeline.Pipeline, attribute string) int {
	if attribute == "" {
		return p.Requests.Limits.Operations
	}
	return p.Requests.Limits.Values
}

// eachValue calls f for the values of a key that have a limit.
func eachValue(p *pipeline.Pipeline, k *signal.Key, f func(Value)) {
	if p.Requests.Limits.Operations > 0 {
		f(Value{k.Service, "", k.Operation})
	}
	if p.Requests.Limits.Values > 0 {
		for name, value := range k.Attributes.All() {
			f(Value{k.Service, name, value})
		}
	}
}

// admit makes values that are new known by name, as far as there is room, and counts all others of their attribute
// together. What a batch is counted by is a function of its records and of the version that its reservation names.
func (p *partition) admit(ctx context.Context, b *batch) error {
	store, limits := p.loop.values, p.src.Pipeline.Requests.Limits
	if store == nil || b.stream != signal.Requests || limits.Operations == 0 && limits.Values == 0 {
		return nil
	}
	d, name := p.loop.dictionary(p.src.Pipeline.Name), p.src.Pipeline.Name
	d.mu.Lock()
	defer d.mu.Unlock()
	read := func() error {
		return p.insist(ctx, func() error {
			changes, err := store.Admitted(ctx, name, d.version)
			if err == nil {
				d.learn(changes)
			}
			return err
		})
	}
	if d.began.IsZero() || d.version < b.values {
		if err := read(); err != nil {
			return err
		}
	}
	d.watch(b.readAt)
	if b.until == 0 {
		for range 5 { // somebody else may be faster
			changes := p.wanted(d, b)
			if len(changes) == 0 {
				break
			}
			version := d.version + 1
			for i := range changes {
				changes[i].Version = version
			}
			if err := p.insist(ctx, func() error { return store.Admit(ctx, name, version, changes) }); err != nil {
				return err
			}
			if err := read(); err != nil {
				return err
			}
		}
		b.values = d.version
	}
	p.collapse(d, b)
	return nil
}

// wanted are the changes that would let the batch's values be counted by name: the most frequent first, as far as there is
// room. Where there is none, what has not been seen for long makes it.
func (p *partition) wanted(d *dictionary, b *batch) (out []Admission) {
	unknown := map[Value]uint64{}
	note := func(k *signal.Key, n uint64) {
		eachValue(p.src.Pipeline, k, func(v Value) {
			switch {
			case !d.admitted(v, d.version):
				unknown[v] += n
			case b.readAt.Sub(d.seen[v]) > valuesSeen:
				d.seen[v] = b.readAt
			}
		})
	}
	for i := range b.cells {
		n := uint64(0)
		for o := range signal.NumOutcomes {
			n += b.cells[i].Outcome(signal.Outcome(o))
		}
		note(&b.cells[i].key.Key, n)
	}
	for i := range b.points {
		note(&signal.Key{Path: b.points[i].Path, Attributes: b.points[i].Attributes}, 1)
	}
	if len(unknown) == 0 {
		return nil
	}
	list := slices.SortedFunc(maps.Keys(unknown), func(x, y Value) int {
		return cmp.Or(cmp.Compare(unknown[y], unknown[x]), cmp.Compare(x.Service, y.Service), cmp.Compare(x.Attribute, y.Attribute), cmp.Compare(x.Value, y.Value))
	})
	forgotten := d.forgotten(b.readAt)
	taken := map[scope]int{}
	for _, v := range list {
		s := scope{v.Service, v.Attribute}
		if d.counts[s]+taken[s] >= valueLimit(p.src.Pipeline, s.attribute) {
			old := forgotten[s]
			if len(old) == 0 {
				continue
			}
			out = append(out, Admission{Value: old[0], Retired: true})
			forgotten[s] = old[1:]
			taken[s]--
		}
		out = append(out, Admission{Value: Value{strings.Clone(v.Service), strings.Clone(v.Attribute), strings.Clone(v.Value)}})
		if taken[s]++; len(out) >= maxAdmitted {
			break
		}
	}
	return out
}

// forgotten are values that were not seen for long, the oldest first, once it is known for long what is seen.
func (d *dictionary) forgotten(now time.Time) map[scope][]Value {
	out := map[scope][]Value{}
	if now.Sub(d.began) < valuesForgotten {
		return out
	}
	for v, turns := range d.turns {
		if len(turns)%2 == 1 && now.Sub(d.seen[v]) >= valuesForgotten {
			s := scope{v.Service, v.Attribute}
			out[s] = append(out[s], v)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(x, y Value) int { return cmp.Or(d.seen[x].Compare(d.seen[y]), cmp.Compare(x.Value, y.Value)) })
	}
	return out
}

// collapse counts what is not admitted as OtherValue.
func (p *partition) collapse(d *dictionary, b *batch) {
	if b.values == 0 {
		return // reserved by a program that knew no limits
	}
	known := map[*Key]*Key{} // what becomes of keys
	others := map[scope]uint64{}
	become := func(k signal.Key) (signal.Key, bool) {
		changed := false
		var pairs []signal.Attr
		eachValue(p.src.Pipeline, &k, func(v Value) {
			if !d.admitted(v, b.values) {
				changed = true
				others[scope{v.Service, v.Attribute}]++
				if v.Attribute == "" {
					k.Operation = OtherValue
				} else {
					pairs = append(pairs, signal.Attr{Name: v.Attribute, Value: OtherValue})
				}
			}
		})
		if len(pairs) > 0 {
			all := make([]signal.Attr, 0, k.Attributes.Len()+len(pairs))
			for name, value := range k.Attributes.All() {
				all = append(all, signal.Attr{Name: name, Value: value})
			}
			k.Attributes = signal.AttributesOf(append(all, pairs...)...)
		}
		return k, changed
	}
	byID := map[cellID]int{}
	for i := range b.cells {
		from := b.cells[i]
		to, ok := known[from.key]
		if !ok {
			if k, changed := become(from.key.Key); changed {
				to = NewKey(k, 0)
			}
			known[from.key] = to
		}
		if to == nil {
			continue
		}
		id := cellID{from.bucket, to.ID}
		at, there := byID[id]
		if !there {
			b.cells[i].key = to
			byID[id] = i
			continue
		}
		c := from.Signal()
		b.rest(&b.cells[at]).Merge(&c)
		b.cells[i] = Cell{} // marked by having no key
	}
	b.cells = slices.DeleteFunc(b.cells, func(c Cell) bool { return c.key == nil })
	for i := range b.points {
		q := &b.points[i]
		if k, changed := become(signal.Key{Path: q.Path, Attributes: q.Attributes}); changed {
			q.Path, q.Attributes = k.Path, k.Attributes
		}
	}
	for s, n := range others {
		p.loop.metrics.others.WithLabelValues(attributeLabel(s.attribute)).Add(float64(n))
		if !d.full[s] {
			d.full[s] = true
			p.loop.notice(p.tp, NoticeValues, tooManyValues(s, valueLimit(p.src.Pipeline, s.attribute)))
		}
	}
}

func attributeLabel(attribute string) string { return cmp.Or(attribute, "operation") }

func tooManyValues(s scope, limit int) string {
	if s.attribute == "" {
		return fmt.Sprintf("service %q has more than %d operations: the others are counted as %s; let routes put ids out of their names, or raise limits.operations", s.service, limit, OtherValue)
	}
	return fmt.Sprintf("attribute %q of service %q has more than %d values: the others are counted as %s; is it worth being counted, or raise limits.values", s.attribute, s.service, limit, OtherValue)
}

// dictionary is the one of a pipeline.
func (l *Loop) dictionary(pipeline string) *dictionary {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dictionaries[pipeline] == nil {
		l.dictionaries[pipeline] = newDictionary()
	}
	return l.dictionaries[pipeline]
}
