package route

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// TimeInterval is a recurring time such as "office hours in Berlin". A list that is absent does not restrict.
type TimeInterval struct {
	Times       []ClockRange `yaml:"times"`
	Weekdays    []Range      `yaml:"-"`
	DaysOfMonth []Range      `yaml:"-"`
	Months      []Range      `yaml:"-"`
	Years       []Range      `yaml:"-"`
	Location    Zone         `yaml:"location"`

	RawWeekdays    []strictyaml.Located[string] `yaml:"weekdays"`
	RawDaysOfMonth []strictyaml.Located[string] `yaml:"days_of_month"`
	RawMonths      []strictyaml.Located[string] `yaml:"months"`
	RawYears       []strictyaml.Located[string] `yaml:"years"`
}

// ClockRange is a time of day, from start to before end; 24:00 is the end of the day.
type ClockRange struct {
	Start ClockTime `yaml:"start_time"`
	End   ClockTime `yaml:"end_time"`
}

// ClockTime is minutes since midnight by the clock on the wall.
type ClockTime int

// UnmarshalText reads HH:MM.
func (c *ClockTime) UnmarshalText(b []byte) error {
	h, m, ok := strings.Cut(string(b), ":")
	hours, errH := strconv.Atoi(h)
	minutes, errM := strconv.Atoi(m)
	if !ok || errH != nil || errM != nil || len(m) != 2 || hours < 0 || minutes < 0 || minutes > 59 || hours*60+minutes > 24*60 {
		return fmt.Errorf("%q is no time of day from 00:00 to 24:00", b)
	}
	*c = ClockTime(hours*60 + minutes)
	return nil
}

// Range holds both ends.
type Range struct{ From, To int }

// Zone is an IANA time zone; UTC where none is given.
type Zone struct{ *time.Location }

// UnmarshalText loads the zone. "Local" is refused: the same file must mean the same on every machine.
func (z *Zone) UnmarshalText(b []byte) error {
	if string(b) == "Local" {
		return fmt.Errorf("location Local differs from machine to machine; name the zone, such as Europe/Berlin")
	}
	loc, err := time.LoadLocation(string(b))
	if err != nil {
		return fmt.Errorf("%q is no IANA time zone", b)
	}
	z.Location = loc
	return nil
}

// Contains tells whether t lies in the interval. Everything is read off the clock on the wall of the zone, never
// computed by adding 24 hours: days around a clock change have 23 or 25.
func (ti TimeInterval) Contains(t time.Time) bool {
	loc := ti.Location.Location
	if loc == nil {
		loc = time.UTC
	}
	t = t.In(loc)
	year, month, day := t.Date()
	last := time.Date(year, month+1, 0, 12, 0, 0, 0, loc).Day()
	return ti.inTimes(t.Hour()*60+t.Minute()) &&
		in(ti.Weekdays, int(t.Weekday()), 0) && in(ti.DaysOfMonth, day, last) &&
		in(ti.Months, int(month), 0) && in(ti.Years, year, 0)
}

func (ti TimeInterval) inTimes(minute int) bool {
	if len(ti.Times) == 0 {
		return true
	}
	for _, r := range ti.Times {
		if minute >= int(r.Start) && minute < int(r.End) {
			return true
		}
	}
	return false
}

// in counts negative ends from the end of the month of last days: -1 is the last day.
func in(ranges []Range, v, last int) bool {
	for _, r := range ranges {
		from, to := r.From, r.To
		if from < 0 {
			from = max(1, last+1+from)
		}
		if to < 0 {
			to = last + 1 + to
		}
		if v >= from && v <= to {
			return true
		}
	}
	return len(ranges) == 0
}

// UnmarshalStrict reads the interval and its ranges.
func (ti *TimeInterval) UnmarshalStrict(n *yaml.Node) error {
	type plain TimeInterval
	if err := strictyaml.DecodeNode(n, (*plain)(ti)); err != nil {
		return err
	}
	var errs strictyaml.Errors
	for _, r := range ti.Times {
		if r.Start >= r.End {
			errs.Add(strictyaml.PosOf(n), fmt.Errorf("start_time must be before end_time; a night is two ranges, up to 24:00 and from 00:00"))
		}
	}
	parse := func(raw []strictyaml.Located[string], names []string, first, lo, hi int, into *[]Range) {
		for _, s := range raw {
			r, err := parseRange(s.Value, names, first, lo, hi)
			errs.Add(s.Pos, err)
			*into = append(*into, r)
		}
	}
	parse(ti.RawWeekdays, weekdays, 0, 0, 6, &ti.Weekdays)
	parse(ti.RawDaysOfMonth, nil, 0, -31, 31, &ti.DaysOfMonth)
	parse(ti.RawMonths, months, 1, 1, 12, &ti.Months)
	parse(ti.RawYears, nil, 0, 1970, 9999, &ti.Years)
	return errs.Err()
}

var (
	weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	months   = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september",
		"october", "november", "december"}
)

// parseRange reads "monday:friday", "1:5", "-3:-1" or one value.
func parseRange(s string, names []string, first, lo, hi int) (Range, error) {
	from, to, two := strings.Cut(s, ":")
	a, err := parsePoint(from, names, first, lo, hi)
	if err != nil || !two {
		return Range{a, a}, err
	}
	b, err := parsePoint(to, names, first, lo, hi)
	if err == nil && a > b && (a < 0) == (b < 0) {
		return Range{}, fmt.Errorf("%q ends before it begins", s)
	}
	return Range{a, b}, err
}

func parsePoint(s string, names []string, first, lo, hi int) (int, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	for i, n := range names {
		if s == n {
			return i + first, nil
		}
	}
	v, err := strconv.Atoi(s)
	if err != nil && len(names) > 0 {
		return 0, fmt.Errorf("%q is none of %s", s, strings.Join(names, ", "))
	}
	if err != nil || v < lo || v > hi || v == 0 && lo < 0 {
		return 0, fmt.Errorf("%q is no number from %d to %d", s, lo, hi)
	}
	return v, nil
}
