package detect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// JudgeAll lets every rule judge every series that it selects, whether it can be abnormal or not: as slow as it is simple.
func (d *Detector) JudgeAll() { d.plan.all = true }

// Areas is how many areas of the help desk are told apart.
func (d *Detector) Areas() int { return len(d.desk) }

// Sharing is how many areas and services have a part of the budget of rules that put evidence together.
func (d *Detector) Sharing() (n int) {
	for _, f := range d.fusers() {
		n += len(f.places)
	}
	return n
}

// Apart tells in words where two snapshots differ.
func Apart(x, y []byte) string {
	a, errA := readState(x)
	b, errB := readState(y)
	if errA != nil || errB != nil {
		return fmt.Sprint(errA, errB)
	}
	var out []string
	for name, of := range map[string]func(*state) any{
		"pending": func(s *state) any { return s.Pending }, "gauges": func(s *state) any { return s.Gauges }, "desk": func(s *state) any { return s.Desk },
		"known": func(s *state) any { return s.Known }, "changes": func(s *state) any { return s.Changes }, "findings": func(s *state) any { return s.Findings },
		"incidents": func(s *state) any { return s.Inc }, "seen": func(s *state) any { return s.Seen }, "recalled": func(s *state) any { return s.recalled },
		"proofs": func(s *state) any { return s.proofs },
		"paths":  func(s *state) any { return packedSeries(s.paths) }, "slices": func(s *state) any { return packedSeries(s.slices) },
	} {
		p, _ := json.Marshal(of(a))
		q, _ := json.Marshal(of(b))
		if n := 0; !bytes.Equal(p, q) {
			for n < min(len(p), len(q)) && p[n] == q[n] {
				n++
			}
			out = append(out, fmt.Sprintf("%s from byte %d on: …%s… and …%s…", name, n, p[max(0, n-200):min(len(p), n+200)], q[max(0, n-200):min(len(q), n+200)]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func packedSeries(all []*series) (out []string) {
	for _, s := range all {
		var w packer
		w.series(s)
		out = append(out, fmt.Sprintf("%s %x", s.key, w.b))
	}
	return out
}
