package ingest

import (
	"encoding/json"
	"time"
)

// reservation is the metadata of a commit: what a successor must know to store the very same rows.
type reservation struct {
	End         int64  `json:"end"` // the range is from the commit's offset to here; 0 reserves nothing
	Incarnation uint32 `json:"incarnation"`
	Revision    string `json:"revision,omitempty"`
	Watermark   int64  `json:"watermark,omitempty"` // before the batch, Unix milliseconds
	ReadAt      int64  `json:"read_at,omitempty"`   // the clock when the batch began, Unix milliseconds
	Again       bool   `json:"again,omitempty"`     // a part of its dead letters may be stored, of a range that nobody knows
	Values      uint64 `json:"values,omitempty"`    // version of the dictionary of values
	LostAt      int64  `json:"lost_at,omitempty"`   // since when the lock is waited out that was found lost, Unix milliseconds
}

func (r reservation) String() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and a text cannot fail
	}
	return string(b)
}

// parseReservation reads metadata of our own; anything else reserves nothing.
func parseReservation(offset int64, metadata string) (reservation, bool) {
	var r reservation
	if metadata == "" || json.Unmarshal([]byte(metadata), &r) != nil || r.End <= offset || offset < 0 {
		return reservation{}, false
	}
	return r, true
}

// whose tells whether somebody else committed, and if not, since when a lost lock is waited out, zero if it is not.
func whose(offset int64, metadata string) (foreign bool, lostAt time.Time) {
	var r reservation
	if offset < 0 {
		return false, time.Time{}
	}
	if metadata == "" || json.Unmarshal([]byte(metadata), &r) != nil {
		return true, time.Time{}
	}
	return false, fromMillis(r.LostAt)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
