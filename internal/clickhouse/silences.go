package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

// Silences copies silences for analysts. Where they count is elsewhere. One goroutine uses it.
type Silences struct {
	db     *DB
	stored map[string]time.Time // end of what this process has stored, by id
}

// NewSilences makes a writer over an open database, which stays the caller's.
func NewSilences(db *DB) *Silences { return &Silences{db: db, stored: map[string]time.Time{}} }

// Copy stores those of all silences that it has not stored as they are. Every process of an installation may do so: the table
// keeps one row of each.
func (s *Silences) Copy(ctx context.Context, all []silence.Silence) error {
	var news []silence.Silence
	there := make(map[string]bool, len(all))
	for _, x := range all {
		there[x.ID] = true
		if end, known := s.stored[x.ID]; !known || !end.Equal(x.EndsAt) {
			news = append(news, x)
		}
	}
	for id := range s.stored {
		if !there[id] {
			delete(s.stored, id) // long over, and forgotten by the store, too
		}
	}
	if err := s.db.insert(ctx, "", silencesBlock(news)); err != nil {
		return fmt.Errorf("copy silences: %w", err)
	}
	for _, x := range news {
		s.stored[x.ID] = x.EndsAt
	}
	return nil
}

func silencesBlock(rows []silence.Silence) *block {
	single := make([]route.Matchers, len(rows))
	for i := range rows {
		for _, text := range rows[i].Matchers {
			ms, err := route.ParseMatchers(text)
			if err != nil { // of another version; such a one silences nothing
				single[i] = nil
				break
			}
			single[i] = append(single[i], ms...)
		}
		if single[i] == nil {
			single[i] = route.Matchers{{Name: "", Op: route.NotEqual}} // which no label satisfies
		}
	}
	each := func(of func(route.Matcher) string) func(int) []string {
		return func(i int) []string {
			out := make([]string, len(single[i]))
			for k, m := range single[i] {
				out[k] = of(m)
			}
			return out
		}
	}
	b := newBlock("silences", len(rows))
	column(b, "id", func(i int) string { return rows[i].ID })
	column(b, "matchers", func(i int) []string { return list(rows[i].Matchers) })
	column(b, "names", each(func(m route.Matcher) string { return m.Name }))
	column(b, "operators", each(func(m route.Matcher) string { return string(m.Op) }))
	column(b, "values", each(func(m route.Matcher) string { return m.Value }))
	column(b, "starts_at", func(i int) time.Time { return toDB(rows[i].StartsAt) })
	column(b, "ends_at", func(i int) time.Time { return toDB(rows[i].EndsAt) })
	column(b, "created_at", func(i int) time.Time { return toDB(rows[i].CreatedAt) })
	column(b, "created_by", func(i int) string { return rows[i].CreatedBy })
	column(b, "comment", func(i int) string { return rows[i].Comment })
	column(b, "expired_by", func(i int) string { return rows[i].ExpiredBy })
	column(b, "expired_at", func(i int) *time.Time { return nullable(rows[i].ExpiredAt) })
	column(b, "ended", func(i int) uint8 { return flag(!rows[i].ExpiredAt.IsZero()) })
	return b
}
