package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const day = 24 * time.Hour

// retain makes tick inputs live as long as the configuration says, where the tables say otherwise. What is stored already is
// deleted at the next merges, not at once.
func (d *DB) retain(ctx context.Context) error {
	days := int64(d.cfg.TickRetention.Std() / day)
	var tables []string
	err := d.query(ctx, "read retention", queryText("retention.sql"), func(r driver.Rows) error {
		var table string
		err := r.Scan(&table)
		tables = append(tables, table)
		return err
	}, ch.Named("interval", fmt.Sprintf("inserted_at + toIntervalDay(%d)", days)))
	if err != nil {
		return err
	}
	for _, table := range tables {
		statement := fmt.Sprintf("ALTER TABLE %s MODIFY TTL inserted_at + INTERVAL %d DAY SETTINGS materialize_ttl_after_modify = 0", table, days)
		if err := d.exec(ctx, "set the retention of "+table, statement); err != nil {
			return err
		}
		d.logger.Info("Retention changed", "table", table, "days", days)
	}
	return nil
}
