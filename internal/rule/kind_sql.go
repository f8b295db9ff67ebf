package rule

import (
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

const exampleSQL = `alert: CheckoutStuck
kind: sql
query: |
  SELECT target AS service, count() AS value
  FROM changes
  WHERE marker = 0 AND kind = 'job' AND time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}
  GROUP BY service
above: 20
window: 15m
for: 2m
`

// Bounds of what a sql rule may ask for. An answer is kept with the tick that saw it, so it has to stay small.
const (
	maxSQLWindow  = 31 * 24 * time.Hour
	maxSQLTimeout = 30 * time.Second
	maxSQLRows    = 10_000
)

// SQL fires for each row that a query of ClickHouse returns: what the other kinds cannot say. It is asked once an interval of its
// group, beside the ticks, about a span of event time that is complete; what it answered is kept with the tick.
type SQL struct {
	// One SELECT of `{from:DateTime64(3)}` to `{to:DateTime64(3)}`: columns that tell rows apart, and a number named `value`
	Query   Query               `yaml:"query" strict:"required"`
	Above   *float64            `yaml:"above"`    // rows with a larger value are abnormal; without `above` and `below` every row is
	Below   *float64            `yaml:"below"`    // rows with a smaller value are abnormal, too
	Window  strictyaml.Duration `yaml:"window"`   // from `from` to `to`, a multiple of 10 s, 31d at most
	Timeout strictyaml.Duration `yaml:"timeout"`  // an answer that takes longer is none, 30s at most
	MaxRows int                 `yaml:"max_rows"` // an answer with more rows is none, 10000 at most
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *SQL) SetDefaults() {
	p.Window, p.Timeout, p.MaxRows = 5*minute, strictyaml.Duration(10*time.Second), 1000
}

// Check finds what types alone cannot refuse.
func (p *SQL) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	errs = p.Query.check(pos)
	if d := p.Window.Std(); d < signal.BucketSize || d > maxSQLWindow || d%signal.BucketSize != 0 {
		errs = append(errs, pos.Errorf("window %s: want a multiple of %s, at most %s", p.Window, signal.BucketSize, strictyaml.Duration(maxSQLWindow)))
	}
	if d := p.Timeout.Std(); d < time.Second || d > maxSQLTimeout {
		errs = append(errs, pos.Errorf("timeout %s: want between 1s and %s", p.Timeout, strictyaml.Duration(maxSQLTimeout)))
	}
	if p.MaxRows < 1 || p.MaxRows > maxSQLRows {
		errs = append(errs, pos.Errorf("max_rows %d: want between 1 and %d", p.MaxRows, maxSQLRows))
	}
	if p.Above != nil && p.Below != nil && *p.Below > *p.Above {
		errs = append(errs, pos.Errorf("below %g and above %g: every value is one or the other, so every row is abnormal", *p.Below, *p.Above))
	}
	return errs
}

// Compares tells whether the value of a row is asked for, or that there is one.
func (p *SQL) Compares() bool { return p.Above != nil || p.Below != nil }

// Abnormal judges the value of a row. A value that is no number is none, whatever it is compared with.
func (p *SQL) Abnormal(value float64) bool {
	return !math.IsNaN(value) && (!p.Compares() || p.Above != nil && value > *p.Above || p.Below != nil && value < *p.Below)
}

// TooLow tells a value that is abnormal because there is too little of something.
func (p *SQL) TooLow(value float64) bool { return p.Below != nil && value < *p.Below }

var _ Params = (*SQL)(nil)
