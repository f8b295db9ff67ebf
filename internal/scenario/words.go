package scenario

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Clock is a time of the scenario's day, UTC: 08:43 or 08:43:30. Hours may pass 24 for a scenario over midnight.
type Clock time.Duration

var (
	_ encoding.TextUnmarshaler = (*Clock)(nil)
	_ encoding.TextUnmarshaler = (*Shape)(nil)
	_ encoding.TextUnmarshaler = (*Source)(nil)
)

// UnmarshalText reads HH:MM or HH:MM:SS.
func (c *Clock) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ":")
	total, unit := time.Duration(0), time.Hour
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || len(part) != 2 || i > 0 && n > 59 || n > 47 && i == 0 {
			parts = nil
			break
		}
		total += time.Duration(n) * unit
		unit /= 60
	}
	if len(parts) < 2 || len(parts) > 3 {
		return &strictyaml.Error{Msg: fmt.Sprintf("%q is not a time of day", text), Hint: "write 08:43 or 08:43:30"}
	}
	*c = Clock(total)
	return nil
}

// String is HH:MM:SS.
func (c Clock) String() string {
	d := time.Duration(c)
	return fmt.Sprintf("%02d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// Shape is the way from one point of a driver to the next.
type Shape string

const (
	Linear   Shape = "linear"   // a straight ramp, the default
	Step     Shape = "step"     // nothing until the point, then all of it
	Approach Shape = "approach" // exponential: quickly at first, slower near the end
)

// UnmarshalText reads one of the three words.
func (s *Shape) UnmarshalText(text []byte) (err error) {
	*s, err = strictyaml.Enum[Shape]("shape", text, Linear, Step, Approach)
	return err
}

// Source says where a figure comes from, so that nobody takes an assumption for a fact.
type Source string

const (
	Published Source = "published" // in a public report of the day
	Assumed   Source = "assumed"   // chosen by us, as no report says it
)

// UnmarshalText reads one of the two words.
func (s *Source) UnmarshalText(text []byte) (err error) {
	*s, err = strictyaml.Enum[Source]("source", text, Published, Assumed)
	return err
}
