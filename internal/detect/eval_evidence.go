package detect

import (
	"fmt"
	"slices"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// bank keeps the evidence of one rule: a key for each path and slice that it selects.
type bank struct {
	rule   *compiled
	match  *rule.PathMatch
	model  evidence.Model
	budget float64 // false alarms a minute
	floor  float64
	words  evidence.Words
	counts func(*signal.Cell) (n, bad uint64)
	// Half of the budget is for paths, half for slices: many slices must not use up what paths may.
	places [2]evidence.Shares
	fresh  []*series // with counts since the last evaluation
}

// proof is the evidence of one rule about one series; the key is nil where the rule does not select the series.
type proof struct {
	key   *evidence.Key
	place int
	fresh bool
	// proven is the key's gain as of its own minute, known until something is counted.
	proven float64
	known  bool
}

// now is what the key has proven; every rule that asks in a step gets it for the price of one.
func (p *proof) now() float64 {
	if !p.known {
		p.proven, p.known = p.key.Gain(p.key.Minute()), true
	}
	return p.proven
}

func (p *proof) score() float64 { return evidence.Decades(p.key.Share(), p.now()) }

// gain is what is left of it at a later minute.
func (p *proof) gain(minute int64) float64 { return p.now() * p.key.Fade(minute) }

// gainAtMost is no less than gain, and quickly told.
func (p *proof) gainAtMost(minute int64) float64 {
	if p.known {
		return p.gain(minute)
	}
	return p.key.GainAtMost(minute)
}

// proof is that of the bank in the given place; nil if its rule does not select the series.
func (s *series) proof(place int) *proof {
	if place >= len(s.proofs) || s.proofs[place] == nil || s.proofs[place].key == nil {
		return nil
	}
	return s.proofs[place]
}

// newBank gives nil for a rule that does not judge by evidence.
func newBank(c *compiled) *bank {
	b := &bank{rule: c, model: evidence.Default()}
	var budget rule.Budget
	switch p := c.Params.(type) {
	case *rule.FailureRate:
		budget, b.match, b.floor = p.FalsePages, &p.Match, float64(p.MinExcess)
		b.model.Burst = int(p.Blips.Std().Minutes())
		bad := p.BadOutcomes()
		b.words.Bad = "failed"
		if bad != onlyFailures {
			b.words.Bad = "were refused or failed"
		}
		b.counts = func(c *signal.Cell) (uint64, uint64) {
			x := counts{outcomes: c.Outcomes}
			return x.judged(bad)
		}
	case *rule.Latency:
		budget, b.match, b.floor = p.FalsePages, &p.Match, float64(p.MinExcess)
		b.model.Burst = int(p.Blips.Std().Minutes())
		b.words.Bad = "took longer than " + p.SlowerThan.String()
		slower := p.SlowerThan.Std()
		b.counts = func(c *signal.Cell) (uint64, uint64) { return c.Latency.Total(), c.Latency.Above(slower) }
	default:
		return nil
	}
	if b.budget = budget.PerMinute(); b.budget == 0 {
		return nil
	}
	c.bank = b
	return b
}

func (b *bank) share(place int) float64 { return b.budget / 2 * evidence.Share(place) }

func half(s *series) int {
	if s.key.Attributes != "" {
		return 1
	}
	return 0
}

// selects tells whether the rule judges this series.
func (b *bank) selects(s *series) bool {
	if !b.match.Matches(s.key.Path, s.area) {
		return false
	}
	if half(s) == 0 {
		return len(b.match.Attributes) == 0
	}
	return slices.Contains(b.rule.sets, s.set) && b.match.MatchesAttributes(s.key.Attributes)
}

// prove lets a cell count as evidence at the step that sees it: what comes late proves what it proves when it comes.
func (d *Detector) prove(s *series, c *signal.Cell, t int64) {
	if len(d.banks) == 0 {
		return
	}
	if s.proofs == nil {
		s.proofs = make([]*proof, len(d.banks))
	}
	minute := minuteOf(t - 1)
	for i, b := range d.banks {
		p := s.proofs[i]
		if p == nil {
			p = &proof{}
			s.proofs[i] = p
			if b.selects(s) {
				h := half(s)
				p.place = b.places[h].Take()
				p.key = evidence.New(&b.model, b.share(p.place), minute, nil)
				d.joinUnit(s)
			}
		}
		if p.key == nil {
			continue
		}
		if n, bad := b.counts(c); n > 0 {
			p.key.Observe(minute, n, bad)
			p.known = false
			b.touch(s, p)
			d.touchUnit(s)
		}
	}
}

func (b *bank) touch(s *series, p *proof) {
	if !p.fresh {
		p.fresh = true
		b.fresh = append(b.fresh, s)
	}
}

// unprove gives back the places of a series that is forgotten.
func (d *Detector) unprove(s *series) {
	for i, p := range s.proofs {
		if p != nil && p.key != nil {
			b := d.banks[i]
			d.leaveUnit(s)
			b.places[half(s)].Return(p.place)
			b.fresh = slices.DeleteFunc(b.fresh, func(o *series) bool { return o == s })
		}
	}
}

// evalEvidence judges what has new counts, and what has a finding. Evidence about anything else has not changed.
func evalEvidence(d *Detector, r *compiled, t int64, yield func(verdict)) {
	b, place := r.bank, slices.Index(d.banks, r.bank)
	asked := b.fresh
	for _, s := range asked {
		s.proofs[place].fresh = false
	}
	for k := range r.active {
		if s := d.judged(k); s != nil && place < len(s.proofs) && !slices.Contains(asked, s) {
			asked = append(asked, s)
		}
	}
	// Paths come before their slices, which say nothing where the path does.
	d.rank()
	if byRank := func(x, y *series) int { return x.rank - y.rank }; !slices.IsSortedFunc(asked, byRank) {
		slices.SortFunc(asked, byRank)
	}
	whole := map[signal.Path]bool{}
	for _, s := range asked {
		v, ok := b.judge(d, s, s.proofs[place], t)
		if !ok {
			continue
		}
		if half(s) == 0 {
			whole[s.key.Path] = v.abnormal
		} else if whole[s.key.Path] && r.active[v.key] == nil {
			continue
		}
		yield(v)
	}
	b.fresh = b.fresh[:0]
}

// judged is the series that a finding of a telemetry rule is about; nil once it has been dropped.
func (d *Detector) judged(k incident.FindingKey) *series {
	access, err := signal.ParseAccess(k.Access)
	if err != nil {
		return nil
	}
	return d.seriesOf(signal.Key{Path: signal.Path{Service: k.Service, Operation: k.Operation, Access: access}, Attributes: k.Attributes})
}

func (b *bank) judge(d *Detector, s *series, p *proof, t int64) (v verdict, ok bool) {
	if p == nil || p.key == nil {
		return v, false
	}
	if len(b.rule.active) == 0 && !p.known && p.key.Below() {
		return v, false
	}
	key := pathKey(b.rule.Alert, s.key)
	active := b.rule.active[key]
	if active != nil {
		flow := d.paths.by[signal.Key{Path: s.key.Path}]
		if flow != nil && flow.missing(t) {
			return v, false
		}
		p.key.Advance(minuteOf(t - 1))
		p.known = false
	}
	if active == nil && !p.known && p.key.Below() {
		return v, false
	}
	over := p.score() >= 0
	if !over && active == nil {
		return v, false
	}
	e := p.key.Excess()
	v = verdict{
		key: key, abnormal: over && e.Beyond >= b.floor, value: float64(e.F) / max(1, float64(e.N)), requests: e.N, failures: e.F,
		stream:   signal.Requests,
		accounts: func() signal.Sketch { return s.accountsOf(t-int64(e.Minutes)*60/bucketSeconds, t) },
		explain:  func() string { return b.say(s.key, p.key).Sentence },
		table:    func() []incident.EvidenceRow { return rowsOf("", b.say(s.key, p.key).Rows) },
	}
	return v, v.abnormal || active != nil
}

// say explains the evidence in the rule's words.
func (b *bank) say(k signal.Key, e *evidence.Key) evidence.Explanation {
	w := b.words
	w.Things = things(k)
	x := e.Explain(w)
	if k.Attributes != "" {
		x.Sentence = fmt.Sprintf("where %s: %s", k.Attributes, x.Sentence)
	}
	return x
}

// proofState is the evidence about one series in a snapshot.
type proofState struct {
	Rule  string
	Key   signal.Key
	Place int
	// Fresh tells that it has counts that its rule has not judged yet. What is judged without any could find what the undisturbed
	// detector passes over, such as a slice that stood behind its path until the path recovered.
	Fresh bool
	Data  []byte
}

// proofs lists the evidence in order of rules, paths and slices.
func (d *Detector) proofs() (out []proofState, err error) {
	for i, b := range d.banks {
		for _, t := range []*table{&d.paths, &d.slice} {
			for _, s := range t.order {
				if i >= len(s.proofs) || s.proofs[i] == nil || s.proofs[i].key == nil {
					continue
				}
				p := s.proofs[i]
				data, err := p.key.AppendBinary(nil)
				if err != nil {
					return nil, err
				}
				out = append(out, proofState{b.rule.Alert, s.key, p.place, p.fresh, data})
			}
		}
	}
	return out, nil
}

// restoreProofs puts the evidence back where its rule and its series still are. A rule with another budget goes on with what
// was learned.
func (d *Detector) restoreProofs(from []proofState) error {
	by := map[string]int{}
	for i, b := range d.banks {
		by[b.rule.Alert] = i
	}
	for _, x := range from {
		i, ok := by[x.Rule]
		if !ok {
			continue
		}
		s := d.seriesOf(x.Key)
		if s == nil || !d.banks[i].selects(s) {
			continue
		}
		if x.Place < 0 || x.Place > maxPlaces {
			return fmt.Errorf("%s has place %d", x.Key.Path, x.Place)
		}
		b := d.banks[i]
		key, err := evidence.Decode(&b.model, nil, x.Data)
		if err != nil {
			return fmt.Errorf("%s: %w", x.Key.Path, err)
		}
		key.Rescale(b.share(x.Place))
		if s.proofs == nil {
			s.proofs = make([]*proof, len(d.banks))
		}
		s.proofs[i] = &proof{key: key, place: x.Place}
		d.joinUnit(s)
		b.places[half(s)].Claim(x.Place)
		if x.Fresh {
			b.touch(s, s.proofs[i])
		}
	}
	return nil
}

// maxPlaces bounds what a snapshot may claim.
const maxPlaces = 1 << 24
