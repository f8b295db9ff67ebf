// Package memory is detect.Timeline without a database: for backtests, `tocsin test`, scenarios that run in one
// process, and tests of the detector. It keeps the contract of the stored one, which timelinetest holds both to, and
// forgets everything when the process ends. It does not read Kafka or decode anything: whoever has events feeds it.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Topic is the made-up topic of which each stream is a partition.
const Topic = "memory"

// Timeline is one detector's view of a past that lives in memory. Feeding it and using it may be done from different
// goroutines. Rows that it returns are shared: nobody may change them.
type Timeline struct {
	past  *past
	epoch uint64
}

var _ detect.Timeline = (*Timeline)(nil)

// past is what several detectors share.
type past struct {
	mu     sync.Mutex
	forget bool

	open map[cellKey]*signal.Cell // counted since the last progress
	rows rows                     // of ticks to come
	base [streams]int64           // rows already taken away in front of them

	watermarks [streams]time.Time
	clock      time.Time

	epoch   uint64
	last    uint64 // newest claimed tick
	done    uint64
	ticks   map[uint64]*detect.Inputs
	tickets map[string]bool // seen by a tick
	changes map[changeKey]bool

	sources        map[string]detect.Source
	checkpoint     []byte
	checkpointTick uint64
	transitions    []incident.Transition
	// transitionTicks has for each transition the tick that concluded it.
	transitionTicks []uint64
	events          []incident.Event
	warnings        []incident.Warning
	head            detect.Tick
}

const streams = 5

type rows struct {
	cells   []signal.Cell
	gauges  []signal.Gauge
	tickets []signal.Ticket
	changes []signal.Change
	alerts  []signal.Alert
}

type cellKey struct {
	bucket time.Time
	key    signal.Key
}

type changeKey struct {
	id    string
	phase signal.Phase
}

// New makes an empty past that keeps all that Resume may need: inputs since the last checkpoint.
func New() *Timeline {
	return &Timeline{past: &past{open: map[cellKey]*signal.Cell{}, ticks: map[uint64]*detect.Inputs{}, tickets: map[string]bool{}, changes: map[changeKey]bool{}}}
}

// NewForgetful makes a past that drops a tick's inputs as soon as the tick is done, for long runs that never resume.
func NewForgetful() *Timeline {
	t := New()
	t.past.forget = true
	return t
}

// Again is another detector's view of the same past, such as that of one that was restarted.
func (t *Timeline) Again() *Timeline { return &Timeline{past: t.past} }

// Lead takes the next epoch.
func (t *Timeline) Lead(_ context.Context, _ string) (uint64, error) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch++
	t.epoch = p.epoch
	return t.epoch, nil
}

// Progress says how much has been fed and up to which time.
func (t *Timeline) Progress(context.Context) (detect.Progress, error) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seal()
	out := detect.Progress{Clock: p.clock}
	for i, s := range signal.Streams {
		if end := p.end(i); end > 0 || !p.watermarks[i].IsZero() {
			out.Marks = append(out.Marks, detect.Mark{Partition: partition(i, s), End: end, Watermark: p.watermarks[i]})
		}
	}
	return out, nil
}

func partition(i int, s signal.Stream) detect.Partition {
	return detect.Partition{Topic: Topic, Partition: int32(i), Stream: s}
}

// Claim keeps the tick with the rows between the last tick's marks and its own, unless one of its number is there.
func (t *Timeline) Claim(_ context.Context, tick detect.Tick) (detect.Inputs, error) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticks[tick.Number] == nil {
		if tick.Number != p.last+1 {
			return detect.Inputs{}, fmt.Errorf("claim tick %d: the last one is %d", tick.Number, p.last)
		}
		in, err := p.take(tick)
		if err != nil {
			return detect.Inputs{}, fmt.Errorf("claim tick %d: %w", tick.Number, err)
		}
		p.last, p.ticks[tick.Number] = tick.Number, in
	}
	stored := *p.ticks[tick.Number]
	if highest := max(p.epoch, stored.Tick.Epoch); highest > tick.Epoch {
		return detect.Inputs{}, fmt.Errorf("claim tick %d under epoch %d: epoch %d: %w", tick.Number, tick.Epoch, highest, detect.ErrSuperseded)
	}
	return stored, nil
}

// Commit keeps the outputs of a tick that is not done yet.
func (t *Timeline) Commit(_ context.Context, tick detect.Tick, o detect.Outputs) error {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	if mine := max(t.epoch, tick.Epoch); p.epoch > mine {
		return fmt.Errorf("commit tick %d under epoch %d: epoch %d: %w", tick.Number, mine, p.epoch, detect.ErrSuperseded)
	}
	if tick.Number == p.done && p.checkpointTick < p.done {
		p.keep(tick.Number, o.Checkpoint)
	}
	if tick.Number <= p.done {
		return nil
	}
	p.transitions = append(p.transitions, o.Transitions...)
	for range o.Transitions {
		p.transitionTicks = append(p.transitionTicks, tick.Number)
	}
	p.warnings = append(p.warnings, o.Warnings...)
	for _, e := range o.Events {
		e.Tick = tick.Number
		p.events = append(p.events, e)
	}
	p.done, p.head = tick.Number, tick
	p.keep(tick.Number, o.Checkpoint)
	if p.forget {
		delete(p.ticks, tick.Number-1)
	}
	return nil
}

// keep takes a checkpoint, if it is one, instead of what came before it.
func (p *past) keep(number uint64, checkpoint []byte) {
	if len(checkpoint) == 0 {
		return
	}
	p.checkpoint, p.checkpointTick = slices.Clone(checkpoint), number
	oldest := p.head.To.Add(-detect.WarmUp)
	for n, in := range p.ticks {
		if n < number && in.Tick.To.Before(oldest) { // the last one stays: a repeated claim asks for it
			delete(p.ticks, n)
		}
	}
}

// Resume returns the checkpoint and the ticks after it.
func (t *Timeline) Resume(context.Context) (detect.Resume, error) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.after(p.checkpointTick)
	out.Checkpoint = slices.Clone(p.checkpoint)
	for n := p.checkpointTick + 1; n <= p.last; n++ {
		if p.ticks[n] == nil {
			return detect.Resume{}, fmt.Errorf("resume: the inputs of tick %d are forgotten", n)
		}
		out.Ticks = append(out.Ticks, *p.ticks[n])
	}
	out.Incidents = p.newest(p.head.To.Add(-time.Hour))
	return out, nil
}

// Recall returns the ticks of the last window, as far as they are kept.
func (t *Timeline) Recall(_ context.Context, window time.Duration) (detect.Resume, error) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.last
	for first > 1 && p.ticks[first-1] != nil && p.ticks[first-1].Tick.To.After(p.head.To.Add(-window)) {
		first--
	}
	out := p.after(0)
	for n := max(first, 1); n <= p.last; n++ {
		if p.ticks[n] == nil {
			return detect.Resume{}, fmt.Errorf("recall: the inputs of tick %d are forgotten", n)
		}
		out.Ticks = append(out.Ticks, *p.ticks[n])
	}
	out.CheckpointTick = max(first, 1) - 1
	out.Incidents = p.newest(time.Time{})
	return out, nil
}

// KeepSource keeps the text of a revision.
func (t *Timeline) KeepSource(_ context.Context, s detect.Source) error {
	t.past.mu.Lock()
	defer t.past.mu.Unlock()
	if t.past.sources == nil {
		t.past.sources = map[string]detect.Source{}
	}
	t.past.sources[s.Kind+"/"+s.Revision] = s
	return nil
}

// Source gives the text of a revision.
func (t *Timeline) Source(_ context.Context, kind, revision string) (detect.Source, bool, error) {
	t.past.mu.Lock()
	defer t.past.mu.Unlock()
	s, ok := t.past.sources[kind+"/"+revision]
	return s, ok, nil
}

// after is what the ticks after the given one concluded.
func (p *past) after(tick uint64) detect.Resume {
	out := detect.Resume{CheckpointTick: tick, Unfinished: p.last > p.done}
	seen := map[incident.FindingKey]bool{}
	for i := len(p.transitions) - 1; i >= 0 && p.transitionTicks[i] > tick; i-- {
		t := p.transitions[i]
		k := t.Finding.Key
		k.Rule = t.Finding.Rule
		if t.Finding.Kind != "high_impact" && !seen[k] {
			seen[k] = true
			out.Findings = append(out.Findings, t)
		}
	}
	return out
}

// newest is the last event of each incident that is open or ended after since.
func (p *past) newest(since time.Time) (out []incident.Event) {
	seen := map[string]bool{}
	for i := len(p.events) - 1; i >= 0; i-- {
		e := p.events[i]
		if !seen[e.Incident] && (e.After.State.Open() || !e.At.Before(since)) {
			out = append(out, e)
		}
		seen[e.Incident] = true
	}
	slices.SortFunc(out, func(a, b incident.Event) int { return cmp.Compare(a.Incident, b.Incident) })
	return out
}

// EventsAfter returns the incident log of the ticks after the given one that are done, in order.
func (t *Timeline) EventsAfter(tick uint64) []incident.Event {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	from, _ := slices.BinarySearchFunc(p.events, tick+1, func(e incident.Event, n uint64) int { return cmp.Compare(e.Tick, n) })
	return slices.Clone(p.events[from:])
}

// Head is the newest tick that is done; its number is 0 before the first.
func (t *Timeline) Head() detect.Tick {
	t.past.mu.Lock()
	defer t.past.mu.Unlock()
	return t.past.head
}

// Transitions returns every change of state of a finding, in order.
func (t *Timeline) Transitions() []incident.Transition {
	t.past.mu.Lock()
	defer t.past.mu.Unlock()
	return slices.Clone(t.past.transitions)
}

// Warnings returns every warning, in order.
func (t *Timeline) Warnings() []incident.Warning {
	t.past.mu.Lock()
	defer t.past.mu.Unlock()
	return slices.Clone(t.past.warnings)
}
