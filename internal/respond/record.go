package respond

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Status is what a place believes, or should believe, of an incident.
type Status string

const (
	None         Status = ""
	Opened       Status = "open"
	Acknowledged Status = "acknowledged"
	Closed       Status = "closed"
)

// Said is what a place has been told, or should be.
type Said struct {
	Status   Status            `json:"status,omitempty"`
	Severity incident.Severity `json:"severity"`
	Sequence uint64            `json:"sequence"`
}

// maxNotes bounds the notes that wait for a place; the oldest give way.
const maxNotes = 40

// Record is the outbox's entry for one incident at one place: what should have been said, what has been, and how the
// attempts went. The difference between Want and Got is the work to do, so a backlog never grows beyond one record
// for each incident and place, and order within it cannot be lost.
type Record struct {
	Incident string `json:"incident"`
	Place    string `json:"place"`
	Receiver string `json:"receiver"` // the name at the time, for people
	Kind     string `json:"kind"`
	Revision uint64 `json:"revision"` // raised by each write; of two copies the higher one counts

	// Key is the provider's reference, stored before it is used and used for every later message, whatever
	// files say by then.
	Key  string `json:"key,omitempty"`
	Want Said   `json:"want"`
	Got  Said   `json:"got"`

	Notice  Notice `json:"notice"`
	Notes   []Note `json:"notes,omitempty"`
	Dropped int    `json:"dropped,omitempty"`
	Noted   uint64 `json:"noted,omitempty"` // the last sequence that became a note

	// Members are the incidents that a summary stands for; Joined names the summary that spoke for this record.
	Members []string `json:"members,omitempty"`
	Joined  string   `json:"joined,omitempty"`

	// The attempts at the current step.
	InFlight bool      `json:"in_flight,omitempty"`
	Step     Action    `json:"step,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Attempts int       `json:"attempts,omitempty"`
	// Uncertain: an open, or after it a close, may have arrived although nobody knows.
	Uncertain bool      `json:"uncertain,omitempty"`
	NextAt    time.Time `json:"next_at,omitzero"`
	Failure   Reason    `json:"failure,omitempty"`
	Permanent bool      `json:"permanent,omitempty"`
	// Batch is the last sequence of notes that were sent together with unknown outcome, first at BatchSince. They are
	// sent again as the same batch, so that it can be recognised where it arrived; newer notes wait for the next.
	Batch      uint64    `json:"batch,omitempty"`
	BatchSince time.Time `json:"batch_since,omitzero"`

	// TakenAt is when somebody had taken the incident before this place was paged for it: his word does not stop a page
	// that came after it, which is for others.
	TakenAt time.Time `json:"taken_at,omitzero"`

	// Pages are the times of the newest pages planned, at most four.
	Pages     []time.Time `json:"pages,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	EditedAt  time.Time   `json:"edited_at,omitzero"`
	ClosedAt  time.Time   `json:"closed_at,omitzero"` // when the close was decided
	// NotBefore holds the page of a summary back, so that a place gets at most one of them a minute.
	NotBefore time.Time `json:"not_before,omitzero"`

	interval time.Duration // least time between edits, from the route
}

func (r *Record) key() string { return recordKey(r.Incident, r.Place) }

func recordKey(incidentID, place string) string { return incidentID + "/" + place }

// Newer tells whether the stored value a is a later version of b. Stores that keep two copies decide with it.
func Newer(a, b []byte) bool {
	var x, y struct {
		Revision uint64 `json:"revision"`
	}
	if json.Unmarshal(a, &x) != nil {
		return false
	}
	if json.Unmarshal(b, &y) != nil {
		return true
	}
	return x.Revision > y.Revision
}

// next is the step that brings the place closer to what it should have been told, or "".
func (r *Record) next(p *Place) Action {
	w, g := r.Want, r.Got
	if r.Joined != "" {
		return ""
	}
	switch g.Status {
	case None:
		switch {
		case w.Status == None:
			return ""
		case w.Status == Closed && p.Pages && r.Uncertain:
			return ActionClose // the open may have arrived
		case w.Status == Closed && p.Pages:
			return "" // over before anybody could be woken
		}
		return ActionOpen
	case Closed:
		if w.Status == Opened || w.Status == Acknowledged {
			if p.Edits {
				return ActionUpdate
			}
			return ActionOpen
		}
		if r.Uncertain && !p.Edits {
			return ActionClose // it was opened once more, perhaps
		}
	default:
		switch {
		case w.Status == Closed:
			return ActionClose
		case w.Severity > g.Severity && !p.Edits, r.storm() && w.Sequence > g.Sequence && w.Status == Opened:
			return ActionRaise
		case w.Status == Acknowledged && g.Status == Opened && !p.Edits:
			return ActionAcknowledge
		}
	}
	switch {
	case p.Edits && w.Sequence > g.Sequence:
		return ActionUpdate
	case p.Notes && len(r.Notes) > 0:
		return ActionNote
	}
	return ""
}

// owesClose tells that a place may show as open what is over.
func (r *Record) owesClose() bool {
	return r.Joined == "" && r.Want.Status == Closed && r.Got.Status != Closed && (r.Got.Status != None || r.Uncertain)
}

// step begins or continues the attempts at an action.
func (r *Record) step(a Action, now time.Time) {
	if r.Step != a {
		r.Step, r.Since, r.Attempts, r.Failure, r.Permanent, r.NextAt = a, now, 0, "", false, time.Time{}
	}
}

// batch chooses the notes to send: those of the batch whose outcome is unknown, else all.
func (r *Record) batch(now time.Time) (notes []Note, uncertain bool) {
	if r.Batch == 0 {
		r.Batch, r.BatchSince = r.Notes[len(r.Notes)-1].Sequence, now
		return slices.Clone(r.Notes), false
	}
	for _, n := range r.Notes {
		if n.Sequence <= r.Batch {
			notes = append(notes, n)
		}
	}
	return notes, true
}

func (r *Record) addNote(n Note) {
	if n.Sequence <= r.Noted {
		return
	}
	r.Noted = n.Sequence
	r.Notes = append(r.Notes, n)
	if over := len(r.Notes) - maxNotes; over > 0 {
		r.Notes = append([]Note(nil), r.Notes[over:]...)
		r.Dropped += over
	}
}
