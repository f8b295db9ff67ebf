package respond

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/respond/route"
)

// Silence keeps matching incidents from being told anew while it lasts. It ends by itself and never comes back.
type Silence struct {
	ID       string
	Matchers route.Matchers
	StartsAt time.Time
	EndsAt   time.Time
	By       string
	Comment  string
}

// Holds tells whether the silence is in force for the labels.
func (s Silence) Holds(labels map[string]string, now time.Time) bool {
	return len(s.Matchers) > 0 && !now.Before(s.StartsAt) && now.Before(s.EndsAt) && s.Matchers.Match(labels)
}
