package calibrate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Outcome is what a set of rules came to on the past. Delay is the median in seconds; nil where nothing was detected.
type Outcome struct {
	PagesWeek      float64  `json:"pages_per_week"`
	FalsePagesWeek float64  `json:"false_pages_per_week"`
	Detected       int      `json:"detected"` // of what is labelled, or what responders took for real
	Labels         int      `json:"labels"`
	Delay          *float64 `json:"delay_seconds"`
}

// Proposal is one other value, with what is expected of it alone.
type Proposal struct {
	Setting
	New     string  `json:"proposed"`
	Outcome Outcome `json:"expected"`
}

// Plan is what calibration came to.
type Plan struct {
	Now       Outcome    `json:"now"`
	Proposals []Proposal `json:"proposals"`
	// Together is what all proposals lead to; nil without any.
	Together *Outcome          `json:"together"`
	Tried    int               `json:"tried"`   // replays
	Skipped  int               `json:"skipped"` // candidates that there was no replay left for
	Diff     string            `json:"diff"`
	Files    map[string][]byte `json:"-"` // those that change
}

// Try replays the past with these files. ok is false where they are no valid rules.
type Try func(files map[string][]byte) (o Outcome, ok bool, err error)

// sooner is by how many seconds a shorter delay is worth a proposal of its own.
const sooner = 10

// better tells whether a is to be preferred: never at the price of a detection; then fewer false pages, then a shorter delay.
func better(a, b Outcome) bool {
	switch {
	case a.Detected != b.Detected:
		return a.Detected > b.Detected && a.FalsePagesWeek <= b.FalsePagesWeek
	case a.FalsePagesWeek != b.FalsePagesWeek:
		return a.FalsePagesWeek < b.FalsePagesWeek && late(a) <= late(b)+60
	}
	return late(a)+sooner <= late(b)
}

func late(o Outcome) float64 {
	if o.Delay == nil {
		return 0
	}
	return *o.Delay
}

// Propose tries each setting's other values, one at a time, and keeps the best of those that are better than what is. At most
// `most` replays are made.
func Propose(settings []Setting, files map[string][]byte, most int, try Try) (*Plan, error) {
	p := &Plan{Proposals: []Proposal{}, Files: map[string][]byte{}}
	now, ok, err := try(files)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the rules as they are cannot be read")
	}
	p.Now, p.Tried = now, 1
	for _, s := range settings {
		best := Proposal{Setting: s, Outcome: now}
		for _, v := range s.Candidates() {
			if p.Tried >= most {
				p.Skipped++
				continue
			}
			data, err := s.Edit(files[s.File], v)
			if err != nil {
				return nil, err
			}
			other := maps.Clone(files)
			other[s.File] = data
			o, ok, err := try(other)
			if err != nil {
				return nil, err
			}
			p.Tried++
			if ok && better(o, best.Outcome) {
				best.New, best.Outcome = v, o
			}
		}
		if best.New != "" {
			p.Proposals = append(p.Proposals, best)
		}
	}
	return p, p.together(files, try)
}

// together applies the proposals, the best first, and drops each that makes things worse beside those before it.
func (p *Plan) together(files map[string][]byte, try Try) error {
	slices.SortStableFunc(p.Proposals, func(a, b Proposal) int {
		switch {
		case better(a.Outcome, b.Outcome):
			return -1
		case better(b.Outcome, a.Outcome):
			return 1
		}
		return 0
	})
	last, all := p.Now, maps.Clone(files)
	kept := p.Proposals[:0]
	for _, x := range p.Proposals {
		at := x.Setting
		at.column += shifted(kept, x)
		data, err := at.Edit(all[x.File], x.New)
		if err != nil {
			return err
		}
		next := maps.Clone(all)
		next[x.File] = data
		o, ok, err := try(next)
		if err != nil {
			return err
		}
		p.Tried++
		if !ok || !better(o, last) {
			continue
		}
		kept, last, all = append(kept, x), o, next
	}
	p.Proposals = kept
	if len(kept) > 0 {
		p.Together = &last
	}
	var diff strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(all[name], files[name]) {
			p.Files[name] = all[name]
			diff.WriteString(Diff(name, files[name], all[name]))
		}
	}
	p.Diff = diff.String()
	return nil
}

// shifted is by how much earlier edits of the same line moved a setting.
func shifted(kept []Proposal, x Proposal) (n int) {
	for _, k := range kept {
		if k.File == x.File && k.Line == x.Line && k.column < x.column {
			n += len(k.New) - len(k.Value)
		}
	}
	return n
}

const around = 3

// Diff is a unified diff of two texts with the same number of lines, which editing values keeps.
func Diff(name string, before, after []byte) string {
	a, b := strings.Split(strings.TrimSuffix(string(before), "\n"), "\n"), strings.Split(strings.TrimSuffix(string(after), "\n"), "\n")
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", name, name)
	for i := 0; i < len(a); {
		if a[i] == b[i] {
			i++
			continue
		}
		from, to := max(0, i-around), i+1
		for k := i + 1; k < len(a) && k <= to+2*around; k++ {
			if a[k] != b[k] {
				to = k + 1
			}
		}
		end := min(len(a), to+around)
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", from+1, end-from, from+1, end-from)
		for k := from; k < end; {
			if a[k] == b[k] {
				fmt.Fprintf(&out, " %s\n", a[k])
				k++
				continue
			}
			last := k
			for last < end && a[last] != b[last] {
				last++
			}
			for _, l := range a[k:last] {
				fmt.Fprintf(&out, "-%s\n", l)
			}
			for _, l := range b[k:last] {
				fmt.Fprintf(&out, "+%s\n", l)
			}
			k = last
		}
		i = end
	}
	return out.String()
}
