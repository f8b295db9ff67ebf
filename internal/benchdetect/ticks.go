package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/measured"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// config is what a child process is told, as JSON in its environment.
type config struct {
	Slices, Warm, Ticks int
	Checkpoint          string    // file to write or to read, "" for none
	Started             time.Time // when the parent started it
	Profile             string
	Shipped             bool // evaluate the rules that Tocsin ships instead of the bench's

	// With a database:
	ClickHouse, Database string
	Engine               int // its process
	Replay               int // ticks that a restarted detector has to go through again
}

// result is what one run of one process cost, in seconds and bytes.
type result struct {
	Load float64

	// Of each measured tick. Append is what Prometheus needs to take the samples in; Tocsin's ticks do that themselves.
	CPU, Wall             []float64 `json:",omitempty"`
	AppendCPU, AppendWall []float64 `json:",omitempty"`
	// Whole is all that the process used over the measured ticks, a tick, with collections that fell between ticks. Making the rows is
	// taken out of it.
	Whole           float64
	Warm            float64 // of all ticks before the measured ones, a tick
	Heap, RSS, Peak int64   // what it keeps, what is resident, and at most was
	Series          int     // that it keeps
	Version         string  `json:",omitempty"`
	Rules           map[string]float64
	Firing          []string `json:",omitempty"` // findings after the last tick, in order

	SnapshotCPU   float64 `json:",omitempty"`
	SnapshotBytes int     `json:",omitempty"`

	Restart *restart `json:",omitempty"`
	Claim   *claim   `json:",omitempty"`
}

// inputs are tick k's; ticks count from 1.
func (w *world) inputs(k int) detect.Inputs {
	from := began.Add(time.Duration(k) * signal.BucketSize)
	return detect.Inputs{
		Tick:  detect.Tick{Number: uint64(k + 1), From: from, To: from.Add(signal.BucketSize), Clock: from.Add(signal.BucketSize)},
		Cells: w.cells(k),
	}
}

// troubleFrom is the tick from which some slices are in trouble: fifty minutes before the measured ones where there is time.
func troubleFrom(warm int) int { return max(1, warm-300) }

// runTicks is the role of Tocsin: the detector alone, with rows from memory.
func runTicks(c config) (r result, err error) {
	before := reachable()
	w, err := newWorld(c.Slices, troubleFrom(c.Warm))
	if err != nil {
		return r, err
	}
	set, err := rules(c)
	if err != nil {
		return r, err
	}
	d := detect.New(detect.Config{Rules: set})
	firing := map[string]bool{}
	var warm float64
	for k := range c.Warm {
		in := w.inputs(k)
		cpu := selfCPU()
		out := d.Tick(in)
		warm += selfCPU() - cpu
		follow(firing, &out)
	}
	r.Warm = warm / float64(max(1, c.Warm))
	runtime.GC()
	stop, err := profile(c.Profile)
	if err != nil {
		return r, err
	}
	r.Load = measured.Load()
	whole, making := selfCPU(), 0.0
	for k := c.Warm; k < c.Warm+c.Ticks; k++ {
		cpu := selfCPU()
		in := w.inputs(k)
		now := selfCPU()
		making += now - cpu
		cpu, wall := now, time.Now()
		out := d.Tick(in)
		r.CPU, r.Wall = append(r.CPU, selfCPU()-cpu), append(r.Wall, time.Since(wall).Seconds())
		follow(firing, &out)
	}
	r.Whole = (selfCPU() - whole - making) / float64(max(1, c.Ticks))
	stop()
	r.RSS, r.Peak = resident()
	r.Series = len(w.keys) + w.paths
	w = nil // names of keys that the detector keeps are on its account
	r.Heap = reachable() - before
	for f := range firing {
		r.Firing = append(r.Firing, f)
	}
	slices.Sort(r.Firing)
	cpu := selfCPU()
	state, err := d.Snapshot()
	if err != nil {
		return r, fmt.Errorf("snapshot: %w", err)
	}
	r.SnapshotCPU, r.SnapshotBytes = selfCPU()-cpu, len(state)
	if c.Checkpoint == "" {
		return r, nil
	}
	if err := os.WriteFile(c.Checkpoint, state, 0o600); err != nil {
		return r, fmt.Errorf("keep the checkpoint: %w", err)
	}
	return r, nil
}

// follow keeps the findings that fire.
func follow(firing map[string]bool, out *detect.Outputs) {
	for _, t := range out.Transitions {
		k := t.Finding.Key
		name := finding(t.Finding.Rule, k.Service, k.Operation, k.Access, k.Attributes.Get("region"))
		if t.Finding.State == incident.Firing {
			firing[name] = true
		} else {
			delete(firing, name)
		}
	}
}

// finding names one in both languages.
func finding(words ...string) string { return strings.TrimSpace(strings.Join(words, " ")) }

// profile begins a CPU profile, if a file is named.
func profile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

// replayed is how many ticks a detector goes through again at most that was killed right before its next checkpoint.
func replayed(rows int) int {
	return max(1, min(detect.CheckpointTicks, (detect.CheckpointRows+rows-1)/rows)-1)
}

// restart is how a new process comes to its first tick, in seconds by the clock and of processor time.
type restart struct {
	Read, ReadCPU     float64 // from its start until the state is there
	First, FirstCPU   float64 // the first tick; making its rows is left out
	Replay, ReplayCPU float64 // the ticks that a killed detector has to go through again
	Position          time.Time
	Making            float64 // rows, which here stand for what the database would give
}

// restored is a detector that goes on from the checkpoint.
func restored(c config, set *rule.Set) (*detect.Detector, error) {
	state, err := os.ReadFile(c.Checkpoint)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint: %w", err)
	}
	d := detect.New(detect.Config{Rules: set})
	if err := d.Restore(state); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return d, nil
}

// runRestart is the role of a detector that finds a checkpoint.
func runRestart(c config) (r result, err error) {
	r.Load = measured.Load()
	set, err := rules(c)
	if err != nil {
		return r, err
	}
	d, err := restored(c, set)
	if err != nil {
		return r, err
	}
	x := &restart{Read: time.Since(c.Started).Seconds(), ReadCPU: selfCPU(), Position: d.Position()}
	w, err := newWorld(c.Slices, troubleFrom(c.Warm))
	if err != nil {
		return r, err
	}
	k := int(d.Position().Sub(began) / signal.BucketSize)
	making := time.Now()
	in := w.inputs(k)
	x.Making = time.Since(making).Seconds()
	cpu, wall := selfCPU(), time.Now()
	d.Tick(in)
	x.First, x.FirstCPU = time.Since(wall).Seconds(), selfCPU()-cpu
	for i := range replayed(c.Slices) {
		in := w.inputs(k + 1 + i)
		cpu, wall := selfCPU(), time.Now()
		d.Tick(in)
		x.Replay, x.ReplayCPU = x.Replay+time.Since(wall).Seconds(), x.ReplayCPU+selfCPU()-cpu
	}
	r.RSS, r.Peak = resident()
	r.Restart = x
	return r, nil
}
