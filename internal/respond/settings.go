package respond

import (
	"cmp"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Settings are the loop's numbers; what is zero has the default.
type Settings struct {
	BehindAfter   strictyaml.Duration `yaml:"behind_after"`   // 15m: event time this far behind the clock holds everything back
	PagesMax      int                 `yaml:"pages_max"`      // 3: single pages a receiver gets within pages_window, then one summary
	PagesWindow   strictyaml.Duration `yaml:"pages_window"`   // 5m
	FlapWindow    strictyaml.Duration `yaml:"flap_window"`    // 5m: an incident that reopens this soon after its close pages only if it stays
	Retention     strictyaml.Duration `yaml:"retention"`      // 2d: how long the outbox remembers what is over
	RetryMin      strictyaml.Duration `yaml:"retry_min"`      // 1s
	RetryMax      strictyaml.Duration `yaml:"retry_max"`      // 1m
	SendTimeout   strictyaml.Duration `yaml:"send_timeout"`   // 10s for one message
	EditInterval  strictyaml.Duration `yaml:"edit_interval"`  // 5s between edits of one message, unless its route says group_interval
	TakeoverDelay strictyaml.Duration `yaml:"takeover_delay"` // 15s after a start, recent closes are sent once more
}

func (s Settings) withDefaults() Settings {
	d := func(v *strictyaml.Duration, std time.Duration) { *v = cmp.Or(*v, strictyaml.Duration(std)) }
	d(&s.BehindAfter, 15*time.Minute)
	d(&s.PagesWindow, 5*time.Minute)
	d(&s.FlapWindow, 5*time.Minute)
	d(&s.Retention, 48*time.Hour)
	d(&s.RetryMin, time.Second)
	d(&s.RetryMax, time.Minute)
	d(&s.SendTimeout, 10*time.Second)
	d(&s.EditInterval, 5*time.Second)
	d(&s.TakeoverDelay, 15*time.Second)
	s.PagesMax = cmp.Or(s.PagesMax, 3)
	return s
}

// recheckPermanent is when a delivery that cannot succeed is tried again all the same: somebody may have mended a
// channel or a key at the provider's side.
const recheckPermanent = 10 * time.Minute

// keepUndelivered is how long a close is tried that has not arrived. What it should close stays open at the provider until
// somebody closes it by hand, so it is not forgotten together with what has been told.
const keepUndelivered = 14 * 24 * time.Hour

// resendCloses is how far back closes are sent again after a start.
const resendCloses = 15 * time.Minute
