package detect

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// snapshotVersion changes with the meaning of the state; an older one is refused, and the past is replayed instead.
const snapshotVersion = 1

// state is a Detector between two ticks. All lists are in a fixed order and encoding/json sorts the keys of maps, so that
// equal detectors give equal bytes.
type state struct {
	Version int
	// The revisions with which it was made.
	Rules, Catalogue string `json:",omitempty"`

	At       int64
	Began    int64
	Pending  pending
	Bounds   []latencyBound
	Paths    []series
	Slices   []series
	Gauges   []*gauge
	Desk     map[string]*area
	Known    map[string]int64
	Changes  []*change
	Proofs   []proofState      `json:",omitempty"`
	Recalled map[string][]byte `json:",omitempty"`
	Findings []*finding
	Inc      []*tracked
	Seen     []string
}

// Snapshot gives the whole state. Equal detectors give equal bytes.
func (d *Detector) Snapshot() ([]byte, error) {
	s := state{
		Version: snapshotVersion, Rules: d.cfg.Rules.Revision, Catalogue: d.cfg.Catalogue.Revision, At: d.at, Began: d.began, Pending: d.pending, Bounds: d.bounds, Gauges: d.gauges, Desk: d.desk, Known: d.known,
		Changes: d.changes, Inc: d.inc, Seen: d.seen,
	}
	for _, t := range []struct {
		from *table
		to   *[]series
	}{{&d.paths, &s.Paths}, {&d.slice, &s.Slices}} {
		for _, x := range t.from.order {
			*t.to = append(*t.to, *x)
		}
	}
	for _, r := range d.rules {
		for _, k := range sortedFindings(r.active) {
			s.Findings = append(s.Findings, r.active[k])
		}
	}
	var err error
	if s.Proofs, err = d.proofs(); err != nil {
		return nil, fmt.Errorf("encoding the detector's evidence: %w", err)
	}
	if s.Recalled, err = d.recollections(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the detector's state: %w", err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("compressing the detector's state: %w", err)
	}
	defer w.Close()
	return w.EncodeAll(text, nil), nil
}

// Restore replaces the state by a snapshot's. Rules and catalogue stay those of the Config: what a rule that is gone had
// found is over.
func (d *Detector) Restore(snapshot []byte) error {
	s, err := readState(snapshot)
	if err != nil {
		return err
	}
	return d.restore(s)
}

func readState(snapshot []byte) (*state, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		return nil, fmt.Errorf("reading the detector's state: %w", err)
	}
	defer r.Close()
	text, err := r.DecodeAll(snapshot, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the detector's state: %w", err)
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("reading the detector's state: %w", err)
	}
	if s.Version != snapshotVersion {
		return nil, fmt.Errorf("the detector's state has version %d, this program reads %d", s.Version, snapshotVersion)
	}
	return &s, nil
}

func (d *Detector) restore(s *state) error {
	fresh := New(d.cfg)
	fresh.began, fresh.unplaced = s.Began, true
	fresh.at, fresh.pending, fresh.gauges, fresh.changes, fresh.inc, fresh.seen = s.At, s.Pending, s.Gauges, s.Changes, s.Inc, s.Seen
	for n, a := range s.Desk {
		fresh.desk[n] = a
	}
	for n, b := range s.Known {
		fresh.known[n] = b
	}
	for _, g := range fresh.gauges {
		fresh.byGauge[g.Key] = g
	}
	fresh.restoreTable(&fresh.paths, s.Paths, s.Bounds)
	fresh.restoreTable(&fresh.slice, s.Slices, s.Bounds)
	if err := fresh.restoreProofs(s.Proofs); err != nil {
		return fmt.Errorf("reading the detector's evidence: %w", err)
	}
	if err := fresh.recollect(s.Recalled); err != nil {
		return err
	}
	fresh.restoreFindings(s.Findings)
	*d = *fresh
	return nil
}

func (d *Detector) restoreTable(t *table, from []series, bounds []latencyBound) {
	for i := range from {
		s := &from[i]
		s.area = d.cat.AreaOf(s.key.Service)
		remap(s, bounds, d.bounds)
		s.set = slices.IndexFunc(d.slices, func(names []string) bool {
			k, ok := narrow(s.key, names)
			return ok && k == s.key
		})
		t.insert(s)
	}
}

func (d *Detector) restoreFindings(found []*finding) {
	by := map[string]*compiled{}
	for _, r := range d.rules {
		by[r.Alert] = r
	}
	for _, f := range found {
		r := by[f.F.Rule]
		if r == nil || r.Kind != f.F.Kind {
			continue
		}
		f.F.Key.Rule = f.F.Rule
		f.key, f.rule = f.F.Key, r
		r.active[f.key] = f
	}
	for _, x := range d.inc {
		for i := range x.Members {
			m := &x.Members[i]
			m.Finding.Key.Rule = m.Finding.Rule
			if m.Active && d.finding(m.Finding.Key) == nil {
				m.Active, m.Finding.State, m.Finding.EndedAt = false, incident.Inactive, timeOf(d.at)
			}
		}
		for i := range x.Inc.Findings {
			x.Inc.Findings[i].Finding.Key.Rule = x.Inc.Findings[i].Finding.Rule
		}
	}
}
