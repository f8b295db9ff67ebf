package scenario

import (
	"container/heap"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// draw is one request in short, cheap to sort.
type draw struct {
	at      time.Duration // since midnight, whole milliseconds
	stream  *stream
	set     int
	account string
	attempt uint32
}

// requests makes the requests of a slice second by second: what fails in one second may come again in the next.
func (g *Generator) requests(from, to time.Duration) []signal.Request {
	var out []signal.Request
	for _, st := range g.streams {
		st.stray()
	}
	for ; from < to; from += time.Second {
		daily := 1 + g.scenario.world.Daily.Amplitude*g.scenario.world.Daily.at(from)
		g.draws = g.draws[:0]
		for _, st := range g.streams {
			for range poisson(st.random, st.second(from, daily)) {
				g.draws = append(g.draws, st.fresh(from))
			}
		}
		for len(g.retries) > 0 && g.retries[0].at < from+time.Second {
			d := heap.Pop(&g.retries).(draw)
			d.at = max(d.at, from)
			g.draws = append(g.draws, d)
		}
		// Sorting small keys instead of the draws takes a fifth off the whole generator.
		g.order = g.order[:0]
		for i := range g.draws {
			g.order = append(g.order, uint64(g.draws[i].at-from)<<32|uint64(i))
		}
		slices.Sort(g.order)
		if out == nil {
			out = make([]signal.Request, 0, (len(g.draws)+8)*int((to-from)/time.Second)*9/8)
		}
		g.traces.prepare(len(g.draws))
		for _, key := range g.order {
			out = append(out, g.end(&g.draws[uint32(key)]))
		}
	}
	return out
}

// fresh is a first try at some millisecond of the second.
func (st *stream) fresh(from time.Duration) draw {
	d := draw{at: from + time.Duration(st.random.IntN(1000))*time.Millisecond, stream: st, attempt: 1, account: st.account}
	d.set = st.setShares.draw(st.random)
	if d.account == "" && (st.mix.Anonymous == 0 || st.random.Float64() >= st.mix.Anonymous) {
		d.account = st.accounts.draw(st.random)
	}
	return d
}

// end decides how a request ended.
func (g *Generator) end(d *draw) signal.Request {
	st := d.stream
	r := signal.Request{Time: g.at(d.at), Path: st.path, Count: 1, Account: d.account, Attempt: d.attempt, Attributes: st.sets[d.set], TraceID: g.traces.next()}
	hit := st.outcome(&r)
	if r.Outcome == signal.Failure && st.retry != nil && d.attempt < st.retry.Attempts {
		// The caller tries again when it has seen the failure: after the backoff, and after as long as this try took.
		wait := time.Duration(float64(st.retry.Backoff)*(0.7+0.6*st.random.Float64())) + r.Latency
		again := *d
		again.at, again.attempt = (d.at + wait).Truncate(time.Millisecond), d.attempt+1
		g.retries.push(again)
	}
	g.truth.count(st.truth, d.set, &r, hit)
	return r
}

// outcome fills in how the request ended and names the driver that made it fail, if one did.
func (st *stream) outcome(r *signal.Request) (hit *curve) {
	for _, c := range st.failing {
		if st.random.Float64() < c.share {
			r.Outcome, r.Status, r.Error = signal.Failure, c.effect.status, c.effect.err
			r.Latency = lognormal(st.random, c.effect.wait, 0.25)
			return c.effect.curve
		}
	}
	u, m := st.random.Float64(), &st.mix
	failure := min(0.5, m.Failure*st.errorFactor)
	throttled := min(1, m.Throttled+st.throttled)
	r.Latency = lognormal(st.random, time.Duration(float64(m.Latency)*st.stretch), m.Spread)
	switch {
	case u < failure:
		r.Outcome, r.Status, r.Error = signal.Failure, "500", "internal"
	case u < failure+throttled:
		r.Outcome, r.Status, r.Latency = signal.Throttled, "429", r.Latency/8
	case u < failure+throttled+m.Rejected:
		r.Outcome, r.Status, r.Latency = signal.Rejected, pick(st.random, rejections), r.Latency/2
	default:
		r.Outcome, r.Status = signal.Success, "200"
	}
	r.Latency = r.Latency.Truncate(time.Microsecond)
	if st.rpc {
		r.Status = grpcStatus[r.Status]
	}
	return nil
}

var rejections = []string{"404", "404", "404", "401", "403", "422"}

// longest is what a load balancer in front of everything lets a request take.
const longest = 60 * time.Second

// lognormal draws a duration around a median, in whole microseconds so that no encoding changes it.
func lognormal(r *rand.Rand, median time.Duration, spread float64) time.Duration {
	d := time.Duration(float64(median) * math.Exp(spread*r.NormFloat64()))
	return min(max(d.Truncate(time.Microsecond), 100*time.Microsecond), longest)
}

// maxRetries bounds what waits to be sent again; beyond it callers give up.
const maxRetries = 100_000

// retryQueue holds failed requests until they are tried again, soonest first.
type retryQueue []draw

func (q retryQueue) Len() int           { return len(q) }
func (q retryQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q retryQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *retryQueue) Push(x any)        { *q = append(*q, x.(draw)) }
func (q *retryQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (q *retryQueue) push(d draw) {
	if len(*q) < maxRetries {
		heap.Push(q, d)
	}
}

// tracer makes trace ids, many in one string, so that two million of them cost little.
type tracer struct {
	random *rand.Rand
	block  string
	bytes  []byte
	hex    []byte
}

const traceIDLen = 32

func (t *tracer) prepare(n int) {
	t.bytes, t.hex = t.bytes[:0], t.hex[:0]
	for range n {
		t.bytes = binary.LittleEndian.AppendUint64(t.bytes, t.random.Uint64())
		t.bytes = binary.LittleEndian.AppendUint64(t.bytes, t.random.Uint64()|1) // never all zeros, which means no id
	}
	t.hex = hex.AppendEncode(t.hex, t.bytes)
	t.block = string(t.hex)
}

func (t *tracer) next() string {
	id := t.block[:traceIDLen]
	t.block = t.block[traceIDLen:]
	return id
}
