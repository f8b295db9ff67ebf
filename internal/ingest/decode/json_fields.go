package decode

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// maxAttributes is the most attributes of one event that are kept, the first by name.
const maxAttributes = 32

// eventTime reads RFC 3339 or integer Unix milliseconds.
func eventTime(name string, s *scalar) (time.Time, error) {
	if s == nil || s.text == "" {
		return time.Time{}, missing(name)
	}
	if !s.quoted {
		ms, err := strconv.ParseInt(s.text, 10, 64)
		if err != nil {
			return time.Time{}, invalid("%s %s is neither RFC 3339 nor integer Unix milliseconds", name, cut(s.text, 40))
		}
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, s.text)
	if err != nil {
		return time.Time{}, invalid("%s %q is neither RFC 3339 nor integer Unix milliseconds", name, cut(s.text, 40))
	}
	return t.UTC(), nil
}

// checkType looks at the "type" of events in recordings; where it is given it must be this stream's.
func (d *jsonDecoder) checkType(given string) error {
	if given == "" || given == typeNames[d.stream] {
		return nil
	}
	return invalid("type %q does not belong into a pipeline of %s", cut(given, 40), d.stream)
}

// typeNames are the words of recordings.
var typeNames = map[signal.Stream]string{
	signal.Requests: "request",
	signal.Gauges:   "gauge",
	signal.Tickets:  "ticket",
	signal.Changes:  "change",
	signal.Alerts:   "alert",
}

// attributes keeps texts, numbers and truth values.
func (d *jsonDecoder) attributes(raw map[string]scalar) (signal.Attributes, error) {
	return d.set(raw, d.keep, maxName)
}

func (d *jsonDecoder) set(raw map[string]scalar, keep map[string]string, limit int) (signal.Attributes, error) {
	if len(raw) == 0 {
		return "", nil
	}
	d.pairs = d.pairs[:0]
	for name, v := range raw {
		if !v.quoted && v.text != "" && (v.text[0] == '{' || v.text[0] == '[') {
			return "", invalid("attribute %q must be a single value", cut(name, 40))
		}
		if keep != nil {
			var ok bool
			if name, ok = keep[name]; !ok {
				continue
			}
		}
		d.pairs = append(d.pairs, signal.Attr{Name: cut(name, maxName), Value: cut(v.text, limit)})
	}
	// Two names may be mapped onto one; the order must not depend on the map's.
	slices.SortFunc(d.pairs, func(a, b signal.Attr) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value)) })
	return d.sets.of(d.pairs[:min(len(d.pairs), maxAttributes)]), nil
}

// required checks texts that must be there, in the order given: name, value, name, value.
func required(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return missing(pairs[i])
		}
	}
	return nil
}

func unmarshal[T any](raw []byte) (e T, err error) {
	err = json.Unmarshal(raw, &e)
	return e, err
}

func number(name string, v *float64, low, high float64) (float64, error) {
	if v == nil {
		return 0, nil
	}
	if *v < low || *v > high || math.IsNaN(*v) {
		return 0, invalid("%s must be between %g and %g, not %g", name, low, high, *v)
	}
	return *v, nil
}
