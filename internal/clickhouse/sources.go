package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
)

var (
	_ detect.SourceStore = (*Timeline)(nil)
	_ detect.SourceStore = (*Reader)(nil)
)

// KeepSource stores the text of a revision unless it is there.
func (t *Timeline) KeepSource(ctx context.Context, s detect.Source) error {
	_, ok, err := t.Source(ctx, s.Kind, s.Revision)
	if err != nil || ok {
		return err
	}
	names := slices.Sorted(maps.Keys(s.Files))
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = s.Files[n]
	}
	b := newBlock("sources", 1)
	same(b, "kind", s.Kind)
	same(b, "revision", s.Revision)
	same(b, "names", names)
	same(b, "texts", texts)
	if err := t.db.insert(ctx, fmt.Sprintf("source/%s/%s", s.Kind, s.Revision), b); err != nil {
		return fmt.Errorf("keep %s of revision %s: %w", s.Kind, s.Revision, err)
	}
	return nil
}

// Source reads the text of a revision.
func (t *Timeline) Source(ctx context.Context, kind, revision string) (detect.Source, bool, error) {
	return readSource(ctx, t.db, kind, revision)
}

// Source reads the text of a revision.
func (r *Reader) Source(ctx context.Context, kind, revision string) (detect.Source, bool, error) {
	return readSource(ctx, r.db, kind, revision)
}

func readSource(ctx context.Context, db *DB, kind, revision string) (s detect.Source, ok bool, err error) {
	s = detect.Source{Kind: kind, Revision: revision, Files: map[string]string{}}
	err = db.query(ctx, "read source", queryText("source.sql"), func(rows driver.Rows) error {
		var names, texts []string
		if err := rows.Scan(&names, &texts); err != nil {
			return err
		}
		for i := range min(len(names), len(texts)) {
			s.Files[names[i]] = texts[i]
		}
		ok = true
		return nil
	}, ch.Named("kind", kind), ch.Named("revision", revision))
	return s, ok, err
}
