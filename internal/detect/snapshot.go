package detect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// snapshotVersion changes with the meaning of the state; an older one is refused, and the past is replayed instead.
const snapshotVersion = 2

// snapshotMagic begins a snapshot, before its version.
const snapshotMagic = "tocsin state "

// state is a Detector between two ticks. All lists are in a fixed order and encoding/json sorts the keys of maps, so that
// equal detectors give equal bytes. What there is much of is not in the text but follows it, packed.
type state struct {
	Version int
	// The revisions with which it was made.
	Rules, Catalogue string `json:",omitempty"`

	At       int64
	Began    int64
	Pending  pending
	Bounds   []latencyBound
	Gauges   []*gauge
	Desk     map[string]*area
	Known    map[string]int64
	Changes  []*change
	Findings []*finding
	Inc      []*tracked
	Seen     []string

	paths, slices []*series
	proofs        []proofState
	recalled      map[string][]byte
}

// Snapshot gives the whole state. Equal detectors give equal bytes.
func (d *Detector) Snapshot() ([]byte, error) {
	s := state{
		Version: snapshotVersion, Rules: d.cfg.Rules.Revision, Catalogue: d.cfg.Catalogue.Revision, At: d.at, Began: d.began, Pending: d.pending, Bounds: d.bounds, Gauges: d.gauges, Desk: d.desk, Known: d.known,
		Changes: d.changes, Inc: d.inc, Seen: d.seen, paths: d.paths.order, slices: d.slice.order,
	}
	for _, r := range d.rules {
		for _, k := range sortedFindings(r.active) {
			s.Findings = append(s.Findings, r.active[k])
		}
	}
	var err error
	if s.proofs, err = d.proofs(); err != nil {
		return nil, fmt.Errorf("encoding the detector's evidence: %w", err)
	}
	if s.recalled, err = d.recollections(); err != nil {
		return nil, err
	}
	out := bytes.NewBufferString(snapshotMagic)
	out.WriteByte(snapshotVersion)
	if err := s.write(out); err != nil {
		return nil, fmt.Errorf("encoding the detector's state: %w", err)
	}
	return out.Bytes(), nil
}

// write compresses as it goes: the text, then all series and proofs, in blocks.
func (s *state) write(to io.Writer) error {
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return errors.Join(err, z.Close())
	}
	w := blocks{to: z}
	w.blob(text)
	for _, list := range [][]*series{s.paths, s.slices} {
		w.uint(uint64(len(list)))
		for _, x := range list {
			w.series(x)
			w.flush(false)
		}
	}
	w.uint(uint64(len(s.proofs)))
	for i := range s.proofs {
		w.proof(&s.proofs[i])
		w.flush(false)
	}
	w.uint(uint64(len(s.recalled)))
	for _, k := range slices.Sorted(maps.Keys(s.recalled)) {
		w.text(k)
		w.blob(s.recalled[k])
		w.flush(false)
	}
	w.flush(true)
	return errors.Join(w.err, z.Close())
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
	body, ok := bytes.CutPrefix(snapshot, []byte(snapshotMagic))
	if !ok || len(body) == 0 {
		return nil, errors.New("this is no state of a detector that this program can read")
	}
	if body[0] != snapshotVersion {
		return nil, fmt.Errorf("the detector's state has version %d, this program reads %d", body[0], snapshotVersion)
	}
	var s state
	if err := s.read(bytes.NewReader(body[1:])); err != nil {
		return nil, fmt.Errorf("reading the detector's state: %w", err)
	}
	return &s, nil
}

func (s *state) read(from io.Reader) error {
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		return err
	}
	defer z.Close()
	r := unblock{from: z}
	r.next()
	text := r.blob()
	if r.err != nil {
		return r.err
	}
	if err := json.Unmarshal(text, s); err != nil {
		return err
	}
	columns := columnsFor(len(s.Bounds))
	for _, list := range []*[]*series{&s.paths, &s.slices} {
		for range r.count() {
			if r.next(); r.err != nil {
				return r.err
			}
			*list = append(*list, r.series(columns))
		}
	}
	for range r.count() {
		if r.next(); r.err != nil {
			return r.err
		}
		s.proofs = append(s.proofs, r.proof())
	}
	s.recalled = map[string][]byte{}
	for range r.count() {
		if r.next(); r.err != nil {
			return r.err
		}
		k := r.text()
		s.recalled[k] = r.blob()
	}
	return r.err
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
	fresh.restoreTable(&fresh.paths, s.paths, s.Bounds)
	fresh.restoreTable(&fresh.slice, s.slices, s.Bounds)
	if err := fresh.restoreProofs(s.proofs); err != nil {
		return fmt.Errorf("reading the detector's evidence: %w", err)
	}
	if err := fresh.recollect(s.recalled); err != nil {
		return err
	}
	fresh.restoreFindings(s.Findings)
	*d = *fresh
	return nil
}

func (d *Detector) restoreTable(t *table, from []*series, bounds []latencyBound) {
	for _, s := range from {
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
	gone := func(f *incident.Finding) bool { return by[f.Rule] == nil || by[f.Rule].Kind != f.Kind }
	for _, f := range found {
		r := by[f.F.Rule]
		if gone(&f.F) {
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
			// That a finding is over is no reason to say so here: what was merged keeps its members as they were.
			if m.Active && gone(&m.Finding) {
				m.Active, m.Finding.State, m.Finding.EndedAt = false, incident.Inactive, timeOf(d.at)
			}
		}
		for i := range x.Inc.Findings {
			x.Inc.Findings[i].Finding.Key.Rule = x.Inc.Findings[i].Finding.Rule
		}
	}
}
