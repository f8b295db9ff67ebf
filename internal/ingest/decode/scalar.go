package decode

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// scalar is a JSON text, number or truth value as it is written; it never fails to decode, so that one wrong value
// costs one event and not all of its record. Lists and objects are kept as their JSON.
type scalar struct {
	text   string
	quoted bool
}

// UnmarshalJSON keeps the text.
func (s *scalar) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*s = scalar{}
	case b[0] == '"':
		s.quoted = true
		return json.Unmarshal(b, &s.text)
	default:
		*s = scalar{text: string(b)}
	}
	return nil
}

// uint reads a whole number; an absent one is 0.
func (s scalar) uint(name string) (uint64, error) {
	if s.text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s.text, 10, 64)
	if err == nil {
		return n, nil
	}
	// JavaScript writes large numbers as 1.75e18.
	f, ferr := strconv.ParseFloat(s.text, 64)
	if ferr != nil || s.quoted || f < 0 || f != math.Trunc(f) || f >= 1<<64 {
		return 0, fmt.Errorf("%s %q is not a whole number", name, cut(s.text, 40))
	}
	return uint64(f), nil
}

func (s scalar) int() (int64, error) {
	n, err := strconv.ParseInt(s.text, 10, 64)
	if err == nil {
		return n, nil
	}
	f, ferr := strconv.ParseFloat(s.text, 64)
	if ferr != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, fmt.Errorf("%q is not a whole number", cut(s.text, 40))
	}
	return int64(f), nil
}
