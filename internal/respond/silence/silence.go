// Package silence keeps silences: who wants which incidents not to be told anew, until when and why. It stores and judges
// them; that the planner heeds them is package respond's business. A silence's end only ever moves to an earlier time, so
// one that has ended never comes back, whatever order its copies arrive in.
package silence

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/route"
)

// Limits of one silence.
const (
	MaxDuration = 400 * 24 * time.Hour
	maxMatchers = 32
	maxText     = 2000
	maxName     = 200
)

// Silence is one as it is stored and shown.
type Silence struct {
	ID        string    `json:"id"`
	Matchers  []string  `json:"matchers"`
	StartsAt  time.Time `json:"starts_at"`
	EndsAt    time.Time `json:"ends_at"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	Comment   string    `json:"comment"`
	// ExpiredBy is who ended it before its time.
	ExpiredBy string    `json:"expired_by,omitempty"`
	ExpiredAt time.Time `json:"expired_at,omitzero"`
}

// The states of a silence, as in Alertmanager.
const (
	Pending = "pending"
	Active  = "active"
	Expired = "expired"
)

// Status tells how it is at a time.
func (s *Silence) Status(now time.Time) string {
	switch {
	case !now.Before(s.EndsAt):
		return Expired
	case now.Before(s.StartsAt):
		return Pending
	}
	return Active
}

// matchers reads the matchers; all have to match.
func (s *Silence) matchers() (out route.Matchers, err error) {
	for _, text := range s.Matchers {
		ms, err := route.ParseMatchers(text)
		if err != nil {
			return nil, fmt.Errorf("matcher %w", err) // it quotes the text
		}
		out = append(out, ms...)
	}
	return out, nil
}

// Check finds what is wrong with a new silence, in a sentence for whoever made it.
func (s *Silence) Check(now time.Time) error {
	ms, err := s.matchers()
	if err != nil {
		return err
	}
	s.CreatedBy, s.Comment = strings.TrimSpace(s.CreatedBy), strings.TrimSpace(s.Comment)
	switch {
	case len(ms) == 0:
		return errors.New("a silence needs a matcher, such as service=\"issues\"")
	case len(ms) > maxMatchers:
		return fmt.Errorf("a silence has %d matchers at most", maxMatchers)
	case ms.Match(map[string]string{}):
		return errors.New("these matchers match everything: a silence has to name something")
	case s.CreatedBy == "":
		return errors.New("a silence needs an author: say who you are")
	case s.Comment == "":
		return errors.New("a silence needs a comment: say why")
	case utf8.RuneCountInString(s.CreatedBy) > maxName || utf8.RuneCountInString(s.Comment) > maxText:
		return fmt.Errorf("author and comment have %d and %d characters at most", maxName, maxText)
	case !s.EndsAt.After(s.StartsAt):
		return errors.New("a silence has to end after it starts")
	case !s.EndsAt.After(now):
		return errors.New("a silence has to end in the future")
	case s.EndsAt.Sub(s.StartsAt) > MaxDuration:
		return errors.New("a silence lasts 400 days at most")
	}
	return nil
}

// Concerns tells whether it matches labels and was in force at some moment of a span; a zero end is one that has not come.
func (s *Silence) Concerns(labels map[string]string, from, to time.Time) bool {
	ms, err := s.matchers()
	return err == nil && len(ms) > 0 && ms.Match(labels) && s.EndsAt.After(from) && (to.IsZero() || s.StartsAt.Before(to)) && s.EndsAt.After(s.StartsAt)
}

// ForPlanner is the silence as package respond heeds it.
func (s *Silence) ForPlanner() (respond.Silence, error) {
	ms, err := s.matchers()
	return respond.Silence{ID: s.ID, Matchers: ms, StartsAt: s.StartsAt, EndsAt: s.EndsAt, By: s.CreatedBy, Comment: s.Comment}, err
}

// merge joins two copies of one silence: the earlier end counts, with whoever set it.
func merge(a, b Silence) Silence {
	if b.EndsAt.Before(a.EndsAt) || b.EndsAt.Equal(a.EndsAt) && a.ExpiredBy == "" && b.ExpiredBy != "" {
		return b
	}
	return a
}

// Newer tells whether a stored copy ends earlier than another. Stores that keep two copies decide with it.
func Newer(a, b []byte) bool {
	var x, y Silence
	if json.Unmarshal(a, &x) != nil {
		return false
	}
	if json.Unmarshal(b, &y) != nil {
		return true
	}
	return x.EndsAt.Before(y.EndsAt)
}
