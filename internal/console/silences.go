package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/common/model"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

// Silencer keeps silences. It is safe for concurrent use; the application closes what is below it.
type Silencer interface {
	List() []silence.Silence
	Add(ctx context.Context, s silence.Silence) (silence.Silence, error)
	Expire(ctx context.Context, id, by string) (silence.Silence, error)
}

// SilenceAnswer is a silence with how it is now.
type SilenceAnswer struct {
	silence.Silence
	Status string `json:"status"` // pending, active, expired
}

// SilenceOrder asks for a silence. It begins now unless starts_at is given, and lasts for duration or until ends_at.
type SilenceOrder struct {
	Matchers []string  `json:"matchers"`
	StartsAt time.Time `json:"starts_at,omitzero"`
	EndsAt   time.Time `json:"ends_at,omitzero"`
	Duration string    `json:"duration,omitempty"` // 2h, 30m, 1d
	By       string    `json:"by"`
	Comment  string    `json:"comment"`
}

func (o *SilenceOrder) silence(now time.Time) (silence.Silence, error) {
	s := silence.Silence{Matchers: o.Matchers, StartsAt: o.StartsAt, EndsAt: o.EndsAt, CreatedBy: o.By, Comment: o.Comment}
	if (o.Duration == "") == o.EndsAt.IsZero() {
		return s, errors.New("give duration or ends_at, and not both")
	}
	if s.StartsAt.IsZero() {
		s.StartsAt = now
	}
	if o.Duration != "" {
		d, err := model.ParseDuration(o.Duration)
		if err != nil || d <= 0 {
			return s, fmt.Errorf("duration %q: want one such as 30m, 2h or 1d", o.Duration)
		}
		s.EndsAt = s.StartsAt.Add(time.Duration(d))
	}
	return s, nil
}

// silencesOf are those that concern an incident while it lasts, for "why did (not) this page?".
func (c *Console) silencesOf(in incident.Incident) []SilenceAnswer {
	out := []SilenceAnswer{}
	if c.Silences == nil {
		return out
	}
	for _, s := range c.Silences.List() {
		if s.Concerns(respond.Labels(in), in.StartedAt, in.ResolvedAt) {
			out = append(out, SilenceAnswer{s, s.Status(c.Now())})
		}
	}
	return out
}

// silences are those that have not ended.
func (c *Console) silences() (out []SilenceAnswer) {
	if c.Silences == nil {
		return nil
	}
	for _, s := range c.Silences.List() {
		if st := s.Status(c.Now()); st != silence.Expired {
			out = append(out, SilenceAnswer{s, st})
		}
	}
	return out
}

func (c *Console) apiSilences(w http.ResponseWriter, r *http.Request) {
	if c.Silences == nil {
		c.json(w, http.StatusNotImplemented, apiError{"this process keeps no silences"})
		return
	}
	out := []SilenceAnswer{}
	for _, s := range c.Silences.List() {
		if st := s.Status(c.Now()); st != silence.Expired || r.FormValue("state") == "all" {
			out = append(out, SilenceAnswer{s, st})
		}
	}
	c.json(w, http.StatusOK, out)
}

func (c *Console) apiSilence(w http.ResponseWriter, r *http.Request) {
	var o SilenceOrder
	if !c.orderOfSilence(w, r, &o) {
		return
	}
	s, err := o.silence(c.Now().UTC().Truncate(time.Second))
	if err != nil {
		c.json(w, http.StatusBadRequest, apiError{err.Error()})
		return
	}
	if s, err = c.Silences.Add(r.Context(), s); err != nil {
		c.silenceFailed(w, err)
		return
	}
	c.Logger.Info("silence added", "id", s.ID, "by", s.CreatedBy, "matchers", s.Matchers, "starts_at", s.StartsAt, "ends_at", s.EndsAt, "comment", s.Comment)
	c.json(w, http.StatusCreated, SilenceAnswer{s, s.Status(c.Now())})
}

func (c *Console) apiExpire(w http.ResponseWriter, r *http.Request) {
	var o struct {
		By string `json:"by"`
	}
	if !c.orderOfSilence(w, r, &o) {
		return
	}
	s, err := c.Silences.Expire(r.Context(), r.PathValue("id"), o.By)
	if err != nil {
		c.silenceFailed(w, err)
		return
	}
	c.Logger.Info("silence ended early", "id", s.ID, "by", s.ExpiredBy)
	c.json(w, http.StatusOK, SilenceAnswer{s, s.Status(c.Now())})
}

func (c *Console) orderOfSilence(w http.ResponseWriter, r *http.Request, into any) bool {
	if !c.ownOrigin(w, r) {
		return false
	}
	if c.Silences == nil {
		c.json(w, http.StatusNotImplemented, apiError{"this process keeps no silences"})
		return false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		c.json(w, http.StatusBadRequest, apiError{"body: " + err.Error()})
		return false
	}
	return true
}

func (c *Console) silenceFailed(w http.ResponseWriter, err error) {
	var refused *silence.Refused
	switch {
	case errors.As(err, &refused):
		c.json(w, http.StatusBadRequest, apiError{err.Error()})
	case errors.Is(err, silence.ErrUnknown):
		c.json(w, http.StatusNotFound, apiError{err.Error()})
	default:
		c.Logger.Warn("storing a silence failed", "err", err)
		c.json(w, http.StatusServiceUnavailable, apiError{err.Error()})
	}
}
