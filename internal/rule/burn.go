package rule

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

const (
	// MaxLong is the longest window of a burn rate.
	MaxLong = 3 * 24 * time.Hour
	// BurnStep is what windows beyond MaxWindow are multiples of: further back, less is kept.
	BurnStep = 5 * time.Minute
)

// BurnRate is one pair of windows, written as "14.4 over 1h and 5m": so many times what the objective allows fails in the long
// window and, so that what is over is seen to be over, in the short one (SRE workbook, chapter 5).
type BurnRate struct {
	Factor      float64
	Long, Short time.Duration
}

var (
	_ encoding.TextUnmarshaler = (*BurnRate)(nil)
	_ encoding.TextMarshaler   = BurnRate{}
)

func (b BurnRate) String() string {
	return fmt.Sprintf("%s over %s and %s", strconv.FormatFloat(b.Factor, 'g', -1, 64), strictyaml.Duration(b.Long), strictyaml.Duration(b.Short))
}

// MarshalText writes what UnmarshalText reads.
func (b BurnRate) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads "14.4 over 1h and 5m".
func (b *BurnRate) UnmarshalText(text []byte) error {
	factor, windows, ok := strings.Cut(string(text), " over ")
	long, short, both := strings.Cut(windows, " and ")
	f, err := strconv.ParseFloat(strings.TrimSpace(factor), 64)
	if !ok || !both || err != nil || !(f > 0 && f < 1e6) {
		return fmt.Errorf("%q is no burn rate, want for example 14.4 over 1h and 5m", text)
	}
	var l, s strictyaml.Duration
	for _, d := range []struct {
		to   *strictyaml.Duration
		text string
	}{{&l, long}, {&s, short}} {
		if err := d.to.UnmarshalText([]byte(strings.TrimSpace(d.text))); err != nil {
			return err
		}
		switch w := d.to.Std(); {
		case w < signal.BucketSize || w%signal.BucketSize != 0:
			return fmt.Errorf("burn rate %q: want multiples of %s", text, signal.BucketSize)
		case w > MaxLong:
			return fmt.Errorf("burn rate %q: want windows of %s at most", text, strictyaml.Duration(MaxLong))
		case w > MaxWindow && w%BurnStep != 0:
			return fmt.Errorf("burn rate %q: want multiples of %s above %s", text, strictyaml.Duration(BurnStep), strictyaml.Duration(MaxWindow))
		}
	}
	if s >= l {
		return fmt.Errorf("burn rate %q: the second window is the short one", text)
	}
	*b = BurnRate{f, l.Std(), s.Std()}
	return nil
}

// workbook has the two pairs of windows that page by the SRE workbook.
func workbook() []BurnRate {
	return []BurnRate{{14.4, time.Hour, 5 * time.Minute}, {6, 6 * time.Hour, 30 * time.Minute}}
}

// checkObjective finds pairs that no share of failures can exceed.
func checkObjective(pos strictyaml.Pos, objective Share, rates []BurnRate) (errs strictyaml.Errors) {
	if objective == 0 {
		return nil
	}
	if objective >= 1 {
		return append(errs, pos.Errorf("objective: 100%% allows no failure at all; use above: 0%% or an objective below it"))
	}
	if len(rates) == 0 {
		errs = append(errs, pos.Errorf("burn_rates: want at least one, as in 14.4 over 1h and 5m"))
	}
	for _, r := range rates {
		if r.Factor*(1-float64(objective)) >= 1 {
			errs = append(errs, pos.Errorf("burn_rates: %s is more than everything failing with an objective of %.6g%%, it can never fire", r, float64(objective)*100))
		}
	}
	return errs
}
