package ingesttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

var errDead = errors.New("this process is dead")

// Chaos is what may go wrong at each step of a process, as probabilities. The zero value is peace.
type Chaos struct {
	Kill       float64 // the process dies
	Freeze     float64 // the process sleeps, and goes on later as if nothing had been
	FreezeMax  time.Duration
	CommitLate float64 // a commit is held in the network: its outcome is unknown, it is applied later
	CommitLost float64 // a commit or its answer is lost
	InsertLate float64 // an insert fails for whoever sent it, and lands later
	InsertFail float64 // an insert fails, perhaps after it was stored
	LateMax    time.Duration
}

// Process stands for an operating system process that may die or sleep. What it uses asks it before and after each step.
type Process struct {
	mu     sync.Mutex
	rnd    *rand.Rand
	chaos  Chaos
	dead   bool
	frozen time.Time
	cancel context.CancelFunc
}

// NewProcess makes a living process; cancel is called when it dies.
func NewProcess(seed uint64, c Chaos, cancel context.CancelFunc) *Process {
	return &Process{rnd: rand.New(rand.NewPCG(seed, 1)), chaos: c, cancel: cancel}
}

// Kill ends the process: from now on nothing it does has an effect.
func (p *Process) Kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.cancel()
}

// Calm ends the chaos, but not what it has done.
func (p *Process) Calm() {
	p.mu.Lock()
	p.chaos = Chaos{}
	p.mu.Unlock()
}

// Dead tells whether the process was killed.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// asleep tells since when and whether the process does nothing.
func (p *Process) asleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead || time.Now().Before(p.frozen)
}

func (p *Process) roll(probability float64) bool {
	return probability > 0 && p.rnd.Float64() < probability
}

func (p *Process) within(d time.Duration) time.Duration {
	return time.Duration(p.rnd.Int64N(int64(max(d, 1))))
}

// step is a point at which the process may die or sleep.
func (p *Process) step() error {
	p.mu.Lock()
	switch {
	case p.roll(p.chaos.Kill):
		p.dead = true
		p.cancel()
	case p.roll(p.chaos.Freeze):
		p.frozen = time.Now().Add(p.within(p.chaos.FreezeMax))
	}
	p.mu.Unlock()
	for {
		p.mu.Lock()
		dead, left := p.dead, time.Until(p.frozen)
		p.mu.Unlock()
		if dead {
			return errDead
		}
		if left <= 0 {
			return nil
		}
		time.Sleep(left)
	}
}

// fate decides between outcomes by their probabilities, -1 for none of them; and how late something comes.
func (p *Process) fate(probabilities func(Chaos) []float64) (which int, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late = p.within(p.chaos.LateMax)
	for i, probability := range probabilities(p.chaos) {
		if p.roll(probability) {
			return i, late
		}
	}
	return -1, late
}
