package clickhouse

import (
	"context"
	"crypto/rand"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

var _ ingest.Values = (*Store)(nil)

// Admitted reads the changes of a pipeline's dictionary after a version.
func (s *Store) Admitted(ctx context.Context, pipeline string, after uint64) (out []ingest.Admission, err error) {
	err = s.db.query(ctx, "read admitted values", queryText("admitted.sql"), func(r driver.Rows) error {
		var a ingest.Admission
		var retired uint8
		if err := r.Scan(&a.Version, &a.Service, &a.Attribute, &a.Value.Value, &retired); err != nil {
			return err
		}
		a.Retired = retired != 0
		out = append(out, a)
		return nil
	}, ch.Named("pipeline", pipeline), ch.Named("after", after))
	return out, err
}

// Admit stores one version of a pipeline's dictionary. Its token makes one of several stay.
func (s *Store) Admit(ctx context.Context, pipeline string, version uint64, changes []ingest.Admission) error {
	b := newBlock("admitted_values", len(changes))
	same(b, "pipeline", pipeline)
	same(b, "version", version)
	column(b, "service", func(i int) string { return changes[i].Service })
	column(b, "attribute", func(i int) string { return changes[i].Attribute })
	column(b, "value", func(i int) string { return changes[i].Value.Value })
	column(b, "retired", func(i int) uint8 { return flag(changes[i].Retired) })
	same(b, "claim", rand.Text())
	op := fmt.Sprintf("admit values of %s, version %d", pipeline, version)
	return fail(op, s.db.insert(ctx, fmt.Sprintf("values/%s/%d", pipeline, version), b))
}
