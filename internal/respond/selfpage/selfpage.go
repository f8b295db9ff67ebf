// Package selfpage tells people that Tocsin itself is in trouble. It needs neither ClickHouse nor Kafka nor leadership nor
// the outbox: receivers come from the configuration file, time from the wall clock, and every replica uses the
// same key for the same cause, so that many senders make one page. A heartbeat goes the other way: when it stops,
// somebody outside raises the alarm.
package selfpage

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Cause is what is wrong, from a closed set, and the label of the metric.
type Cause string

const (
	ClickHouseUnreachable Cause = "clickhouse_unreachable"
	KafkaUnreachable      Cause = "kafka_unreachable"
	IngestBlocked         Cause = "ingest_blocked"
	IngestGap             Cause = "ingest_gap" // records are gone before they were read
	DetectorStalled       Cause = "detector_stalled"
	Lag                   Cause = "lag"
	Partial               Cause = "partial" // ticks go on without some partitions
	RespondStalled        Cause = "respond_stalled"
	OutboxFailing         Cause = "outbox_failing"
	RulesUnreadable       Cause = "rules_unreadable"
	DiskFull              Cause = "disk_full"
)

// Causes is the closed set with what each means for the woken.
var Causes = map[Cause]string{
	ClickHouseUnreachable: "ClickHouse cannot be reached: Tocsin is blind, nothing is detected",
	KafkaUnreachable:      "Kafka cannot be reached: Tocsin is blind, nothing arrives",
	IngestBlocked:         "ingest is blocked: records arrive but are not stored",
	IngestGap:             "records were lost in Kafka before Tocsin read them",
	DetectorStalled:       "the detector does not finish its ticks: nothing is detected",
	Lag:                   "Tocsin is far behind: what it detects is old, and new pages are held back",
	Partial:               "parts of the telemetry are missing: their absence cannot be judged",
	RespondStalled:        "the respond loop does not turn: pages are not sent",
	OutboxFailing:         "the outbox cannot be written: after a crash pages may be doubled or lost",
	RulesUnreadable:       "rules cannot be loaded: the last good ones are in use",
	DiskFull:              "the disk is nearly full",
}

// Config is the section self_page of the configuration file.
type Config struct {
	// Receivers names receivers of the routes file.
	Receivers []string            `yaml:"receivers"`
	After     strictyaml.Duration `yaml:"after"`   // continuous trouble before a page, 30s
	Recover   strictyaml.Duration `yaml:"recover"` // continuous health before the page is closed, 1m
	Repeat    strictyaml.Duration `yaml:"repeat"`  // an open page is sent again, in case another replica closed it, 5m
}

// SetDefaults pages within a minute.
func (c *Config) SetDefaults() {
	c.After, c.Recover, c.Repeat = strictyaml.Duration(30*time.Second), strictyaml.Duration(time.Minute), strictyaml.Duration(5*time.Minute)
}

// Pager watches causes. Report may be called from any goroutine and never blocks; Run owns one goroutine for each place.
type Pager struct {
	cfg    Config
	places []respond.Place
	now    func() time.Time
	name   string
	log    *slog.Logger

	mu      sync.Mutex
	causes  map[Cause]map[string]*state // by reporter
	watched map[Cause]map[string]time.Duration

	open, bad *prometheus.GaugeVec
	sent      *prometheus.CounterVec
	failures  *prometheus.CounterVec
}

type state struct {
	healthy  bool
	since    time.Time // of healthy
	reported time.Time
	detail   string
}

// Options make a Pager. Places are those of the configured receivers; Name tells which process this is.
type Options struct {
	Config   Config
	Places   []respond.Place
	Now      func() time.Time
	Name     string
	Logger   *slog.Logger
	Registry prometheus.Registerer
}

// New makes a pager that does nothing until Run.
func New(o Options) *Pager {
	std := Config{}
	std.SetDefaults()
	if o.Config.After == 0 {
		o.Config.After = std.After
	}
	if o.Config.Recover == 0 {
		o.Config.Recover = std.Recover
	}
	if o.Config.Repeat == 0 {
		o.Config.Repeat = std.Repeat
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tocsin", Subsystem: "selfpage", Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "selfpage", Name: name, Help: help}, labels)
	}
	p := &Pager{cfg: o.Config, places: o.Places, now: o.Now, name: o.Name, log: o.Logger,
		causes: map[Cause]map[string]*state{}, watched: map[Cause]map[string]time.Duration{},
		bad: gauge("unhealthy", "1 while a cause is reported or silent.", "cause"), open: gauge("open", "1 while a place has an open page of Tocsin about itself.", "cause", "place"),
		sent: counter("deliveries_total", "Messages about Tocsin itself that a provider accepted.", "place"), failures: counter("delivery_failures_total", "Failed messages about Tocsin itself.", "place", "reason")}
	for c := range Causes {
		p.bad.WithLabelValues(string(c))
	}
	for _, pl := range o.Places {
		p.sent.WithLabelValues(pl.ID)
		for _, r := range respond.Reasons {
			p.failures.WithLabelValues(pl.ID, string(r))
		}
	}
	if o.Registry != nil {
		o.Registry.MustRegister(p.bad, p.open, p.sent, p.failures)
	}
	return p
}

// Select gives the places that the named receivers lead to.
func Select(places []respond.Place, receivers []string) ([]respond.Place, error) {
	var out []respond.Place
	for _, name := range receivers {
		found := false
		for _, p := range places {
			if !slices.Contains(p.Receivers, name) {
				continue
			}
			found = true
			if !slices.ContainsFunc(out, func(o respond.Place) bool { return o.ID == p.ID }) {
				out = append(out, p)
			}
		}
		if !found {
			return nil, fmt.Errorf("self_page: receiver %q is not defined or leads nowhere", name)
		}
	}
	return out, nil
}

// Reporter is one part of the program that reports. Parts are kept apart: while ingest finds ClickHouse well and the
// detector does not, there is trouble.
type Reporter struct {
	p    *Pager
	name string
}

// From names the part that reports.
func (p *Pager) From(name string) Reporter { return Reporter{p, name} }

// Report says how a cause is now. A cause outside the closed set is a mistake of the program, and panics.
func (r Reporter) Report(c Cause, healthy bool, detail string) {
	if _, ok := Causes[c]; !ok {
		panic("selfpage: unknown cause " + string(c))
	}
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	now := r.p.now()
	if r.p.causes[c] == nil {
		r.p.causes[c] = map[string]*state{}
	}
	s := r.p.causes[c][r.name]
	if s == nil {
		s = &state{healthy: true, since: now}
		r.p.causes[c][r.name] = s
	}
	if s.healthy != healthy {
		s.healthy, s.since = healthy, now
	}
	s.reported = now
	if !healthy {
		s.detail = respond.Cut(detail, 500)
	}
}

// Watch makes silence a trouble: a cause that this part does not report for within counts as unhealthy, because who
// hangs cannot report that it hangs.
func (r Reporter) Watch(c Cause, within time.Duration) {
	r.Report(c, true, "")
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	if r.p.watched[c] == nil {
		r.p.watched[c] = map[string]time.Duration{}
	}
	r.p.watched[c][r.name] = within
}

// Rest ends what this part has to say about a cause: from now on it neither finds trouble nor is missed. Without it, who
// hands his work to another process while there is trouble would report that trouble for ever.
func (r Reporter) Rest(c Cause) {
	r.p.mu.Lock()
	known := r.p.causes[c][r.name] != nil
	delete(r.p.watched[c], r.name)
	r.p.mu.Unlock()
	if known {
		r.Report(c, true, "")
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Healthy tells whether nothing is wrong at this moment, and what is. The heartbeat asks it.
func (p *Pager) Healthy() (bool, []Cause) {
	var bad []Cause
	for c := range Causes {
		if v := p.verdict(c); v.known && !v.healthy {
			bad = append(bad, c)
		}
	}
	slices.Sort(bad)
	return len(bad) == 0, bad
}

type verdict struct {
	known, healthy bool
	since          time.Time
	detail         string
}

// verdict joins what all parts say: trouble since the first that has it, health since the last that found it.
func (p *Pager) verdict(c Cause) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := verdict{healthy: true}
	for name, s := range p.causes[c] {
		v := verdict{known: true, healthy: s.healthy, since: s.since, detail: s.detail}
		if within := p.watched[c][name]; within > 0 && s.healthy {
			if silent := p.now().Sub(s.reported); silent > within {
				v.healthy, v.since = false, s.reported.Add(within)
				v.detail = fmt.Sprintf("%s gives no sign of life for %s", name, silent.Round(time.Second))
			}
		}
		switch {
		case !out.known, out.healthy && !v.healthy:
			out = v
		case out.healthy == v.healthy && v.healthy == v.since.After(out.since):
			out = v
		}
	}
	p.bad.WithLabelValues(string(c)).Set(b2f(!out.healthy))
	return out
}

// Run pages and closes until ctx ends. It returns when all its goroutines have ended.
func (p *Pager) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for i := range p.places {
		wg.Go(func() { p.serve(ctx, &p.places[i]) })
	}
	wg.Wait()
	return nil
}

// said is what one place has been told of one cause.
type said struct {
	open     bool
	unknown  bool // never told anything: an earlier process may have left a page open
	key      string
	at       time.Time
	next     time.Time
	failures int
	first    time.Time
	begun    time.Time // of the trouble
}

func (p *Pager) serve(ctx context.Context, pl *respond.Place) {
	told := map[Cause]*said{}
	order := make([]Cause, 0, len(Causes))
	for c := range Causes {
		order = append(order, c)
		told[c] = &said{unknown: true}
	}
	slices.Sort(order)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, c := range order {
			if ctx.Err() == nil {
				p.step(ctx, pl, c, told[c])
			}
		}
	}
}

func (p *Pager) step(ctx context.Context, pl *respond.Place, c Cause, t *said) {
	v, now := p.verdict(c), p.now()
	if !v.known || now.Before(t.next) {
		return
	}
	lasted := now.Sub(v.since)
	switch {
	case !v.healthy && lasted >= p.cfg.After.Std() && (!t.open || now.Sub(t.at) >= p.cfg.Repeat.Std() && !pl.Edits):
		if !t.open {
			t.begun = v.since
		}
		p.send(ctx, pl, c, t, v, respond.ActionOpen, now)
	case v.healthy && t.open && lasted >= p.cfg.Recover.Std():
		p.send(ctx, pl, c, t, v, respond.ActionClose, now)
	case v.healthy && t.unknown && pl.Pages && lasted >= p.cfg.Recover.Std():
		// What a process before this one opened would stay open for ever. Where nothing is open, the close is dropped.
		p.send(ctx, pl, c, t, v, respond.ActionClose, now)
	}
}

func (p *Pager) send(ctx context.Context, pl *respond.Place, c Cause, t *said, v verdict, a respond.Action, now time.Time) {
	if t.first.IsZero() {
		t.first = now
	}
	d := respond.Delivery{Action: a, Key: t.key, Uncertain: t.failures > 0, Since: t.first, Notice: p.notice(c, t, v, a)}
	if d.Key == "" {
		d.Key = pl.Sender.Key("self/" + string(c))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	receipt, err := pl.Sender.Send(ctx, d)
	if err != nil {
		se := respond.Classify(err)
		p.failures.WithLabelValues(pl.ID, string(se.Reason)).Inc()
		if t.failures++; t.failures == 1 {
			p.log.Error("tell about Tocsin itself", "cause", string(c), "place", pl.ID, "err", se)
		}
		wait := min(30*time.Second, time.Second<<min(t.failures-1, 5))
		t.next = p.now().Add(max(wait, se.After))
		return
	}
	p.sent.WithLabelValues(pl.ID).Inc()
	if !t.unknown || a == respond.ActionOpen {
		p.log.Info("told about Tocsin itself", "cause", string(c), "place", pl.ID, "action", string(a))
	}
	t.open, t.unknown, t.at, t.failures, t.first = a == respond.ActionOpen, false, now, 0, time.Time{}
	if t.key = receipt.Key; a == respond.ActionClose {
		t.key = ""
	}
	p.open.WithLabelValues(string(c), pl.ID).Set(b2f(t.open))
}

func (p *Pager) notice(c Cause, t *said, v verdict, a respond.Action) respond.Notice {
	i := incident.Incident{
		ID: "self/" + string(c), Title: "Tocsin: " + Causes[c], State: incident.Declared, Severity: incident.Critical, Page: true,
		Services: []string{"tocsin"}, StartedAt: t.begun, DeclaredAt: t.begun, FirstFindingAt: t.begun,
		Reason: strings.TrimSpace(v.detail + " (seen by " + p.name + ")"),
		Labels: map[string]string{"self": "true", "cause": string(c)},
	}
	if a == respond.ActionClose {
		i.State, i.ResolvedAt = incident.Resolved, v.since
	}
	return respond.Notice{Incident: i, At: p.now()}
}
