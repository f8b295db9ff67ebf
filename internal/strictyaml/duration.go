package strictyaml

import (
	"encoding"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
)

// Duration is written as Prometheus writes it: 30s, 5m, 1h30m, 7d. It is never negative.
type Duration time.Duration

var (
	_ encoding.TextUnmarshaler = (*Duration)(nil)
	_ encoding.TextMarshaler   = Duration(0)
)

// Std is the standard library's form.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String is the shortest form in Prometheus' syntax.
func (d Duration) String() string { return model.Duration(d).String() }

// MarshalText makes JSON and YAML show what a person would write.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads Prometheus' syntax.
func (d *Duration) UnmarshalText(text []byte) error {
	std, err := parseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(std)
	return nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := model.ParseDuration(s)
	if err != nil {
		return 0, &Error{
			Msg:  fmt.Sprintf("%s is not a duration", quote(s)),
			Hint: "write a number with a unit, such as 30s, 5m, 1h30m or 7d",
		}
	}
	return time.Duration(d), nil
}
