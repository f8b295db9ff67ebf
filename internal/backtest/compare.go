package backtest

import (
	"cmp"
	"slices"
	"time"
)

// ChangeKind says how two sets of rules differ over one incident.
type ChangeKind string

const (
	WouldPage ChangeKind = "would page"     // only with the new rules
	NoLonger  ChangeKind = "would not page" // only with the old ones
	Earlier   ChangeKind = "would page earlier"
	Later     ChangeKind = "would page later"
)

// Change is one difference in who is woken, and when. Of the two incidents one is missing where only one set pages.
type Change struct {
	Recording string     `json:"recording"`
	Kind      ChangeKind `json:"kind"`
	At        *time.Time `json:"at"`         // first page by the new rules
	AgainstAt *time.Time `json:"against_at"` // first page by the old ones
	Title     string     `json:"title"`
	Incident  *string    `json:"incident"`
	Against   *string    `json:"against_incident"`
	// True says whether a label is answered; null without labels.
	True *bool `json:"answers_label"`
}

// Compare lists what differs for whoever is paged between two replays of the same recordings, in order of time. Incidents
// belong together that overlap and share a service or, where they have none, an area or resource; their first pages are compared.
func Compare(recs, against []Recording) []Change {
	out := []Change{}
	for i := range recs {
		if i < len(against) {
			out = append(out, compareOne(&recs[i], &against[i])...)
		}
	}
	return out
}

func compareOne(a, b *Recording) (out []Change) {
	taken := make([]bool, len(b.Incidents))
	for i := range a.Incidents {
		x := &a.Incidents[i]
		if len(x.Pages) == 0 {
			continue
		}
		c := Change{Recording: a.Name, Kind: WouldPage, At: &x.Pages[0].At, Title: x.Title, Incident: &x.ID, True: answersAny(a, x)}
		for k := range b.Incidents {
			y := &b.Incidents[k]
			if taken[k] || len(y.Pages) == 0 || !alike(a, x, y) {
				continue
			}
			taken[k] = true
			c.AgainstAt, c.Against = &y.Pages[0].At, &y.ID
			switch d := c.At.Compare(*c.AgainstAt); {
			case d < 0:
				c.Kind = Earlier
			case d > 0:
				c.Kind = Later
			default:
				c.Kind = ""
			}
			break
		}
		if c.Kind != "" {
			out = append(out, c)
		}
	}
	for k := range b.Incidents {
		if y := &b.Incidents[k]; !taken[k] && len(y.Pages) > 0 {
			out = append(out, Change{Recording: a.Name, Kind: NoLonger, AgainstAt: &y.Pages[0].At, Title: y.Title, Against: &y.ID, True: answersAny(b, y)})
		}
	}
	slices.SortStableFunc(out, func(x, y Change) int { return x.when().Compare(y.when()) })
	return out
}

func (c *Change) when() time.Time {
	switch {
	case c.At == nil:
		return *c.AgainstAt
	case c.AgainstAt == nil:
		return *c.At
	}
	return minTime(*c.At, *c.AgainstAt)
}

// alike tells whether two incidents are about the same trouble.
func alike(rec *Recording, x, y *Incident) bool {
	span := func(in *Incident) (from, to time.Time) {
		from, to = in.Pages[0].At, rec.To
		if in.StartedAt != nil {
			from = *in.StartedAt
		}
		if in.ResolvedAt != nil {
			to = *in.ResolvedAt
		}
		return from, to
	}
	xf, xt := span(x)
	yf, yt := span(y)
	if xf.After(yt) || yf.After(xt) {
		return false
	}
	share := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
	}
	if len(x.Services) > 0 && len(y.Services) > 0 {
		return share(x.Services, y.Services)
	}
	return share(x.Areas, y.Areas) || cmp.Compare(x.Title, y.Title) == 0
}

func answersAny(rec *Recording, in *Incident) *bool {
	if rec.Labels == nil || in.DeclaredAt == nil {
		return nil
	}
	yes := slices.ContainsFunc(rec.Labels.Incidents, func(l Label) bool { return rec.Labels.answers(&l, in, rec.To) })
	return &yes
}

// Pages counts all pages of recordings.
func Pages(recs []Recording) (n int) {
	for i := range recs {
		for k := range recs[i].Incidents {
			n += len(recs[i].Incidents[k].Pages)
		}
	}
	return n
}
