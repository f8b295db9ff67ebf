package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Size is a number of bytes, written as 500KB, 1MiB or plain bytes.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// UnmarshalText reads a size. The largest is 1 TiB, far above any record.
func (s *Size) UnmarshalText(text []byte) error {
	t := strings.TrimSpace(string(text))
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(t, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > 1<<40/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return &strictyaml.Error{Msg: fmt.Sprintf("%q is not a size", t), Hint: "write a whole number with a unit, such as 500KB or 1MiB"}
}

// MarshalText is the largest unit that leaves a whole number.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Size) String() string {
	for i := 2; i >= 0; i-- {
		if u := sizeUnits[i]; s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
