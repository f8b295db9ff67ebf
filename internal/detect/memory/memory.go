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

	checkpoint     []byte
	checkpointTick uint64
	transitions    []incident.Transition
	events         []incident.Event
	warnings       []incident.Warning
	head           detect.Tick
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
	for n := range p.ticks {
		if n < number { // the last one stays: a repeated claim asks for it
			delete(p.ticks, n)
		}
	}
}

// Resume returns the checkpoint and the ticks after it.
func (t *Timeline) Resume(context.Context) (detect.Resume, error) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	out := detect.Resume{Checkpoint: slices.Clone(p.checkpoint), CheckpointTick: p.checkpointTick, Unfinished: p.last > p.done}
	for n := p.checkpointTick + 1; n <= p.last; n++ {
		if p.ticks[n] == nil {
			return detect.Resume{}, fmt.Errorf("resume: the inputs of tick %d are forgotten", n)
		}
		out.Ticks = append(out.Ticks, *p.ticks[n])
	}
	return out, nil
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
