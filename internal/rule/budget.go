package rule

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// MaxBlips is the longest blip a rule may call normal, for services whose deploys take a quarter of an hour: what lasts longer is what people
// want to be told of. It is as much as a key can look back.
const MaxBlips = 20 * time.Minute

// Budget is how many false alarms are accepted in how long, written as in "1 per 30d".
type Budget struct {
	Alarms float64
	Per    time.Duration
}

var (
	_ encoding.TextUnmarshaler = (*Budget)(nil)
	_ encoding.TextMarshaler   = Budget{}
)

// PerMinute is the accepted rate; 0 for no budget.
func (b Budget) PerMinute() float64 {
	if b.Per <= 0 {
		return 0
	}
	return b.Alarms / b.Per.Minutes()
}

// UnmarshalText reads "1 per 30d".
func (b *Budget) UnmarshalText(text []byte) error {
	count, per, ok := strings.Cut(string(text), " per ")
	n, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
	if !ok || err != nil || !(n > 0 && n <= 1000) {
		return fmt.Errorf("%q is no budget, want for example 1 per 30d", text)
	}
	var d strictyaml.Duration
	if err := d.UnmarshalText([]byte(strings.TrimSpace(per))); err != nil {
		return err
	}
	if d.Std() < time.Hour || d.Std() > 10*365*24*time.Hour {
		return fmt.Errorf("a budget per %s: want between 1h and 10y", d)
	}
	*b = Budget{n, d.Std()}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (b Budget) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(b.Alarms, 'g', -1, 64) + " per " + strictyaml.Duration(b.Per).String()), nil
}

// checkWay holds what the three ways to judge a share have in common: it is one of them, and the keys of the others mean nothing.
func checkWay(pos strictyaml.Pos, above, objective Share, budget Budget, blips strictyaml.Duration, others map[string]bool) (errs strictyaml.Errors) {
	ways := 0
	for _, given := range []bool{above != 0, objective != 0, budget != Budget{}} {
		if given {
			ways++
		}
	}
	switch {
	case ways == 0:
		return append(errs, pos.Errorf("want above (a share over 0), objective (as in 99.9%%) or false_pages (a budget, as in 1 per 30d)"))
	case ways > 1:
		errs = append(errs, pos.Errorf("above, objective and false_pages: a rule judges by a threshold, by burn rates or by evidence, not by both of two"))
	}
	for _, key := range SortedKeys(others) {
		switch {
		case !others[key]:
		case budget != Budget{}:
			errs = append(errs, pos.Errorf("%s: means nothing beside false_pages, evidence learns what is usual and needs no window", key))
		case objective != 0 && (key == "window" || key == "times_usual"):
			errs = append(errs, pos.Errorf("%s: means nothing beside objective, burn_rates has the windows and what is allowed", key))
		}
	}
	if budget == (Budget{}) {
		return errs
	}
	return append(errs, checkBlips(pos, blips)...)
}

func checkBlips(pos strictyaml.Pos, blips strictyaml.Duration) (errs strictyaml.Errors) {
	if d := blips.Std(); d < time.Minute || d > MaxBlips || d%time.Minute != 0 {
		errs = append(errs, pos.Errorf("blips %s: want whole minutes, at least 1m and at most %s", blips, strictyaml.Duration(MaxBlips)))
	}
	return errs
}

// aside refuses keys that say something about the way of judging that a rule did not choose.
func aside(pos strictyaml.Pos, given map[string]bool, format string) (errs strictyaml.Errors) {
	for _, key := range SortedKeys(given) {
		if given[key] {
			errs = append(errs, pos.Errorf(format, key))
		}
	}
	return errs
}
