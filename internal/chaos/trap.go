package chaos

import (
	"slices"
	"strings"
	"sync"
)

// stage is when a request is struck on its way through a proxy.
type stage int

const (
	before   stage = iota // it has not reached the server
	after                 // the server has done it, the answer has not reached the member
	answered              // the member has the answer
)

func (s stage) String() string { return [...]string{"before", "after", "answered"}[s] }

// verdict is what becomes of a request that was struck.
type verdict int

const (
	proceed verdict = iota
	lose            // the request, or the answer, is lost with its connection
	refuse          // the server is not asked; the member hears a refusal
	half            // the server gets the first half of it
	orphan          // the member's connection breaks, the request goes its way alone, later
)

// hit is a request that was struck: whose it was, and at which broker, -1 where it was none.
type hit struct{ member, broker int }

// trap waits for a request of a kind and strikes it, once.
type trap struct {
	member int    // whose; anyone's if below 0
	point  string // which step: reserve, insert cells and so on; a star at the end stands for anything
	stage  stage
	strike func(hit)                    // may take its time; the request waits
	midway func(hit)                    // when the first half has been sent, where that is all that is
	held   func(stored <-chan struct{}) // after strike, of an insert: stored closes when its token is confirmed
	then   verdict
	code   int16 // of a refusal, as the server's protocol has it

	sprung chan hit      // holds one
	over   chan struct{} // closed when it has struck, or the request ended before
	once   sync.Once
	struck bool // valid after over
}

// traps are the armed ones, and what the proxies have seen pass.
type traps struct {
	mu    sync.Mutex
	armed []*trap
	seen  map[string]uint64 // requests by point
	lost  struct{ reservations, tokens bool }
}

func newTraps() *traps { return &traps{seen: map[string]uint64{}} }

func (t *traps) arm(tr *trap) {
	tr.sprung, tr.over = make(chan hit, 1), make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, tr)
}

// disarm tells whether the trap was still armed.
func (t *traps) disarm(tr *trap) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.armed, tr)
	if i >= 0 {
		t.armed = slices.Delete(t.armed, i, i+1)
	}
	return i >= 0
}

// spring gives the first trap for a request that passes, or nil.
func (t *traps) spring(h hit, point string) *trap {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[point]++
	if h.member < 0 {
		return nil
	}
	for i, tr := range t.armed {
		if tr.matches(point) && (tr.member < 0 || tr.member == h.member) {
			t.armed = slices.Delete(t.armed, i, i+1)
			tr.sprung <- h
			return tr
		}
	}
	return nil
}

// matches takes a star at the end for anything.
func (tr *trap) matches(point string) bool {
	if prefix, ok := strings.CutSuffix(tr.point, "*"); ok {
		return strings.HasPrefix(point, prefix)
	}
	return tr.point == point
}

// at strikes if the stage is the trap's.
func (tr *trap) at(s stage, h hit) (verdict, bool) {
	if tr == nil || tr.stage != s {
		return proceed, false
	}
	if tr.strike != nil {
		tr.strike(h)
	}
	tr.finish(true)
	return tr.then, true
}

func (tr *trap) finish(struck bool) {
	if tr != nil {
		tr.once.Do(func() {
			tr.struck = struck
			close(tr.over)
		})
	}
}
