package scenario

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// stream is the traffic of one path: of all its callers, or of one actor's.
type stream struct {
	path      signal.Path
	rpc       bool // speaks gRPC, whose status codes are others
	rate      float64
	from, to  time.Duration // nothing outside
	mix       mix
	retry     *retryFile
	sets      []signal.Attributes
	setShares shares
	account   string // an actor's; "" draws one of the world's
	accounts  *accountPool
	effects   []pathEffect
	truth     int // index of its path in the truth

	random          *rand.Rand
	traffic, errors wander
	trafficFactor   float64
	errorFactor     float64

	// What holds in the current second.
	failing   []cause
	throttled float64
	stretch   float64
}

// pathEffect is what one driver does to this path.
type pathEffect struct {
	curve   *curve
	delay   time.Duration
	failure float64
	wait    time.Duration
	status  string
	err     string
	throttle,
	latency, traffic float64
}

// cause is a driver that makes requests fail right now, with its share.
type cause struct {
	share  float64
	effect *pathEffect
}

// The defaults of an effect that only gives a share: callers got an error page after half a second.
const (
	effectStatus = "503"
	effectError  = "unavailable"
	effectWait   = 500 * time.Millisecond
)

func (g *Generator) makeStreams() {
	w := &g.scenario.world
	pool := newAccountPool(w.Accounts)
	dependents := map[string]map[string]bool{}
	for _, e := range g.scenario.file.Effects {
		if on := e.On.DependsOn; dependents[on] == nil {
			dependents[on] = g.scenario.catalogue.dependents(on)
		}
	}
	paths := map[signal.Path]*stream{}
	w.paths(func(p signal.Path, op *operationFile) {
		st := &stream{path: p, rate: op.Rate * w.Scale, to: time.Duration(math.MaxInt64), mix: op.mix(w.Defaults), retry: op.Retry, rpc: op.RPC != "", accounts: pool}
		st.sets, st.setShares = w.attributes(p.Service)
		st.effects = g.effectsOn(p, st.rpc, dependents)
		st.truth = g.truth.path(p, st.sets)
		g.addStream(st, w.Noise, "path "+p.String())
		paths[p] = st
	})
	for _, a := range g.scenario.file.Actors {
		st := *paths[signal.Path{Service: a.Service, Operation: a.Operation, Access: a.Access}]
		st.rate, st.account, st.retry = a.Rate, a.Account, nil
		st.from, st.to = time.Duration(a.Start)+g.shifts[a.Shift], time.Duration(a.End)+g.shifts[a.Shift]
		st.mix.Rejected, st.mix.Throttled, st.mix.Anonymous = a.Rejected, a.Throttled, 0
		// One caller sits in one place.
		st.sets, st.setShares = st.sets[:1], nil
		g.addStream(&st, w.Noise, fmt.Sprintf("actor %s", a.Name))
	}
}

func (g *Generator) addStream(st *stream, n noiseFile, name string) {
	st.random = newRand(g.seed, name)
	// Traffic strays for a minute or two, failure rates for ten.
	st.traffic, st.errors = newWander(n.Traffic, 0.9), newWander(n.Failures, 0.98)
	st.trafficFactor, st.errorFactor = 1, 1
	g.streams = append(g.streams, st)
}

// effectsOn collects the effects on a path: one a driver, later keys in the file replacing earlier ones.
func (g *Generator) effectsOn(p signal.Path, rpc bool, dependents map[string]map[string]bool) (out []pathEffect) {
	index := map[string]int{}
	for _, e := range g.scenario.file.Effects {
		if !e.On.matches(p, dependents[e.On.DependsOn]) {
			continue
		}
		i, known := index[e.Driver]
		if !known {
			i = len(out)
			index[e.Driver] = i
			out = append(out, pathEffect{curve: g.curves[e.Driver], status: effectStatus, err: effectError, wait: effectWait, latency: 1, traffic: 1})
		}
		o := &out[i]
		set(&o.failure, e.FailureShare)
		set((*Dur)(&o.wait), e.FailureLatency)
		set(&o.status, e.Status)
		set(&o.err, e.Error)
		set(&o.throttle, e.ThrottledShare)
		set(&o.latency, e.Latency)
		set(&o.traffic, e.Traffic)
		o.delay = max(o.delay, e.Delay.Std())
	}
	if rpc {
		for i := range out {
			out[i].status = cmp.Or(grpcStatus[out[i].status], out[i].status)
		}
	}
	return out
}

// grpcStatus is what gRPC says for what is written as an HTTP status here and in files.
var grpcStatus = map[string]string{
	"200": "OK", "401": "UNAUTHENTICATED", "403": "PERMISSION_DENIED", "404": "NOT_FOUND", "422": "INVALID_ARGUMENT",
	"429": "RESOURCE_EXHAUSTED", "500": "INTERNAL", "503": "UNAVAILABLE", "504": "DEADLINE_EXCEEDED",
}

// stray moves the noise on, once a slice.
func (st *stream) stray() {
	st.trafficFactor = math.Exp(st.traffic.step(st.random))
	st.errorFactor = math.Exp(st.errors.step(st.random))
}

// second works out what holds in the second from t on and returns the mean number of requests in it.
func (st *stream) second(t time.Duration, daily float64) float64 {
	st.failing, st.throttled, st.stretch = st.failing[:0], 0, 1
	if t < st.from || t >= st.to {
		return 0
	}
	mean := st.rate * st.trafficFactor
	if st.account == "" {
		mean *= daily
	}
	for i := range st.effects {
		e := &st.effects[i]
		v := e.curve.at(t - e.delay)
		if v == 0 {
			continue
		}
		if e.failure > 0 {
			st.failing = append(st.failing, cause{share: min(1, e.failure*v), effect: e})
		}
		st.throttled = min(1, st.throttled+e.throttle*v)
		st.stretch *= 1 + (e.latency-1)*v
		mean *= max(0, 1+(e.traffic-1)*v)
	}
	return mean
}
