package detect

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// forget gives back the places of subjects of which nothing is left: names of services come with telemetry, and each that is new would
// get a smaller share of the budget, for ever. What counts as left is what a snapshot has, too.
func (f *fuser) forget(d *Detector) {
	for s, place := range f.places {
		if d.evident(s) || f.rule.active[incident.FindingKey{Rule: f.rule.Alert, Area: s.Area, Service: s.Service}] != nil {
			continue
		}
		f.shares.Return(place)
		delete(f.places, s)
		delete(f.fresh, s)
	}
}

// evident tells whether there is evidence about a subject, of whichever source.
func (d *Detector) evident(s subject) bool {
	if u := d.units[s]; u != nil && len(u.series) > 0 {
		return true
	}
	for _, e := range d.hears() {
		if s.Area != "" && e.by[s.Area] != nil {
			return true
		}
	}
	return false
}

// fuserState is a fuser in a snapshot, in order of subjects.
type fuserState struct {
	Subjects []subject
	Places   []int
	Fresh    []subject `json:",omitempty"`
}

func (f *fuser) save() ([]byte, error) {
	var s fuserState
	for x := range f.places {
		s.Subjects = append(s.Subjects, x)
	}
	slices.SortFunc(s.Subjects, subject.compare)
	for _, x := range s.Subjects {
		s.Places = append(s.Places, f.places[x])
	}
	for x := range f.fresh {
		s.Fresh = append(s.Fresh, x)
	}
	slices.SortFunc(s.Fresh, subject.compare)
	return json.Marshal(s)
}

func (f *fuser) load(data []byte) error {
	var s fuserState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if len(s.Places) != len(s.Subjects) {
		return fmt.Errorf("%d subjects have %d places", len(s.Subjects), len(s.Places))
	}
	for i, x := range s.Subjects {
		if s.Places[i] < 0 || s.Places[i] > maxPlaces {
			return fmt.Errorf("%s has place %d", x.name(), s.Places[i])
		}
		f.places[x] = s.Places[i]
		f.shares.Claim(s.Places[i])
	}
	for _, x := range s.Fresh {
		f.fresh[x] = true
	}
	return nil
}
