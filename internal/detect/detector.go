package detect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Config is what a Detector is made of. It is not changed afterwards.
type Config struct {
	Rules     *rule.Set
	Catalogue *catalogue.Catalogue // nil is the empty one
	// ExternalLabels name the installation, as in Prometheus; templates see them as $externalLabels, incidents carry them.
	ExternalLabels map[string]string
	// IDPrefix starts incident ids; "T" if empty.
	IDPrefix string
}

func (c *Config) setDefaults() {
	if c.Catalogue == nil {
		c.Catalogue = catalogue.Empty()
	}
	if c.Rules == nil {
		c.Rules = &rule.Set{}
	}
	c.IDPrefix = cmp.Or(c.IDPrefix, "T")
}

// Detector is the pure heart of the loop: a function from the past and a tick's inputs to conclusions. It does no input
// or output and reads no clock. It is owned by one goroutine.
type Detector struct {
	cfg      Config
	cat      *catalogue.Catalogue
	rules    []*compiled
	bounds   []latencyBound
	slices   [][]string        // sets of attribute names whose single values are judged
	banks    []*bank           // of the rules that judge by evidence
	units    map[subject]*unit // what evidence is put together for; nil if no rule asks
	plan     plan              // of what is asked of each series
	counters []counter         // memories that every cell of a path concerns

	at      int64 // the last evaluated step, in buckets since 1970; 0 before the first tick
	began   int64 // the first one
	pending pending
	paths   table
	slice   table // slices that rules name
	routes  routes
	ranked  int // the version of the tables by which series are numbered
	gauges  []*gauge
	byGauge map[gaugeKey]*gauge
	desk    map[string]*area
	known   map[string]int64 // services, with the newest bucket in which they were seen
	changes []*change
	inc     []*tracked // open incidents and those that ended a while ago, oldest first
	seen    []string   // ids of commands that were carried out, oldest first
	// unplaced asks the next step to look for findings that fire and belong to no incident, as after a restart.
	unplaced bool
	over     []*finding // of rules that a reload took away; they end at the next step

	// Within one step:
	out   *Outputs
	tick  Tick
	tally tally
	fired []*finding // began to fire in this step
	hops  map[string]map[string]int
}

// table holds series by key, and in order of key.
type table struct {
	by      map[signal.Key]*series
	order   []*series
	version int // changes with the order
}

func (t *table) get(k signal.Key, area func() string) *series {
	s := t.by[k]
	if s == nil {
		s = &series{key: k, area: area()}
		t.insert(s)
	}
	return s
}

func (t *table) insert(s *series) {
	if t.by == nil {
		t.by = map[signal.Key]*series{}
	}
	t.by[s.key] = s
	i, _ := slices.BinarySearchFunc(t.order, s.key, func(s *series, k signal.Key) int { return s.key.Compare(k) })
	t.order = slices.Insert(t.order, i, s)
	t.version++
}

// New makes a detector that knows nothing yet.
func New(cfg Config) *Detector {
	cfg.setDefaults()
	d := &Detector{
		cfg: cfg, cat: cfg.Catalogue,
		byGauge: map[gaugeKey]*gauge{}, desk: map[string]*area{}, known: map[string]int64{},
		hops: map[string]map[string]int{},
	}
	d.compile()
	d.units = newUnits(d)
	return d
}

// Position is the event time up to which all has been evaluated; zero before the first tick.
func (d *Detector) Position() time.Time {
	if d.at == 0 {
		return time.Time{}
	}
	return timeOf(d.at)
}

// Tick takes in the tick's rows and evaluates each step in (From, To]. A step at t sees the buckets that ended by t and the
// events before t, so how ticks are cut does not matter. Commands count at To, after its step: they work while nothing moves, too.
//
// The first tick of a detector may have From = To: it takes in what there is and sets the position to the oldest of it, so that
// the past is evaluated by the ticks that follow.
func (d *Detector) Tick(in Inputs) Outputs {
	var out Outputs
	d.out, d.tick = &out, in.Tick
	d.take(&in)
	d.hear(in.Tick.Answers)
	from, to := bucketOf(in.Tick.From), bucketOf(in.Tick.To)
	if d.at == 0 {
		d.at = from
		if from == to {
			if oldest, ok := d.pending.oldest(); ok {
				d.at = min(oldest, to)
			}
		}
		d.began = d.at
	}
	if to > from {
		for d.at < to {
			d.at++
			d.step(d.at)
		}
	}
	d.command(in.Tick.Commands)
	d.out = nil
	return out
}

// step is one evaluation: these are the stages of the detector.
func (d *Detector) step(t int64) {
	d.fired = d.fired[:0]
	d.retire(timeOf(t))
	for _, stage := range []func(int64){
		d.observe,   // rows into windows
		d.listen,    // silence of customers into evidence
		d.spread,    // who has new evidence
		d.sift,      // who can be abnormal at all
		d.evaluate,  // windows against rules: findings
		d.missed,    // and those that fired before this detector began
		d.correlate, // findings into incidents
		d.declare,   // incidents through their life
	} {
		stage(t)
	}
}

// within gives what a node depends on within two hops, remembered.
func (d *Detector) within(node string) map[string]int {
	m, ok := d.hops[node]
	if !ok {
		m = d.cat.Upstream(node, 2)
		d.hops[node] = m
	}
	return m
}

func (d *Detector) partial(s signal.Stream) bool { return slices.Contains(d.tick.Partial, s) }

func timeOf(bucket int64) time.Time      { return time.Unix(bucket*bucketSeconds, 0).UTC() }
func bucketOf(t time.Time) int64         { return floorDiv(t.Unix(), bucketSeconds) }
func minuteOf(bucket int64) int64        { return floorDiv(bucket*bucketSeconds, 60) }
func buckets(d time.Duration) int64      { return int64(d / signal.BucketSize) }
func spanOf(buckets int64) time.Duration { return time.Duration(buckets) * signal.BucketSize }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// change is what is known of one change.
type change struct {
	ID             string
	Kind           signal.ChangeKind
	Target, Title  string
	URL            string
	Dose           float64
	Started, Ended time.Time
	Aborted        bool
}
