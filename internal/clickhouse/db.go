package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
)

// DB is a pool of connections to one database. It is safe for use by many goroutines; whoever opens it closes it
// after everything that uses it has ended.
type DB struct {
	conn    driver.Conn
	cfg     Config
	logger  *slog.Logger
	metrics *Metrics

	mu      sync.Mutex
	known   map[string]bool              // settings that this engine has, nil until asked
	columns map[string]map[string]string // types by table and column
}

// Open prepares the pool; the first request connects. logger and metrics may be nil.
func Open(cfg Config, logger *slog.Logger, metrics *Metrics) (*DB, error) {
	cfg.SetDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	conn, err := ch.Open(opts)
	if err != nil {
		return nil, fail("open ClickHouse", err)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if metrics == nil {
		metrics = NewMetrics(prometheus.NewRegistry())
	}
	return &DB{conn: conn, cfg: cfg, logger: logger, metrics: metrics, columns: map[string]map[string]string{}}, nil
}

// Close gives the connections back. Requests that still run fail.
func (d *DB) Close() error {
	if err := d.conn.Close(); err != nil {
		return fail("close ClickHouse", err)
	}
	return nil
}

// Ping asks whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	return d.request(ctx, "ping", func(ctx context.Context) error { return d.conn.Exec(ctx, "SELECT 1") })
}

// request bounds, measures and classifies one exchange with the engine.
func (d *DB) request(ctx context.Context, op string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.RequestTimeout.Std())
	defer cancel()
	start := time.Now()
	err := fail(op, f(ctx))
	d.metrics.requests.WithLabelValues(op).Observe(time.Since(start).Seconds())
	if err != nil {
		d.metrics.errors.WithLabelValues(string(err.(*Error).Reason)).Inc() //nolint:errorlint // fail makes exactly this type
	}
	return err
}

// query runs a SELECT and gives each row to scan.
func (d *DB) query(ctx context.Context, op, sql string, scan func(driver.Rows) error, args ...any) error {
	return d.request(ctx, op, func(ctx context.Context) error {
		if d.cfg.InsertQuorum != "" {
			ctx = ch.Context(ctx, ch.WithSettings(ch.Settings{"select_sequential_consistency": 1}))
		}
		rows, err := d.conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return fmt.Errorf("read row: %w", err)
			}
		}
		return rows.Err()
	})
}

// pinned are the settings that exactly-once rests on. Defaults differ between versions and users' profiles: in 26.7
// async_insert is on, which does not deduplicate, so each insert says what it needs. Block sizes are above what
// one insert may hold, so that it stays one block, which is what a token covers.
func pinned() ch.Settings {
	return ch.Settings{
		"async_insert":          0,
		"wait_for_async_insert": 1,
		"insert_deduplicate":    1,
		"deduplicate_insert":    "enable",
		// An INSERT SELECT whose order is not fixed would be stored without a word about its token being ignored.
		"deduplicate_insert_select":                          "force_enable",
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		"max_insert_block_size":                              blockRowsMax * 8,
		"min_insert_block_size_rows":                         blockRowsMax * 8,
		"min_insert_block_size_bytes":                        4 << 30,
		"max_insert_threads":                                 1,
	}
}

// settings returns the pinned settings that the engine knows (older ones lack some and refuse them) with the token.
func (d *DB) settings(ctx context.Context, token string) (ch.Settings, error) {
	all := pinned()
	d.mu.Lock()
	known := d.known
	d.mu.Unlock()
	if known == nil {
		var names []string
		if err := d.conn.QueryRow(ctx, queryText("settings.sql"), ch.Named("names", slices.Sorted(maps.Keys(all)))).Scan(&names); err != nil {
			return nil, fmt.Errorf("ask for known settings: %w", err)
		}
		known = map[string]bool{}
		for _, n := range names {
			known[n] = true
		}
		d.mu.Lock()
		d.known = known
		d.mu.Unlock()
	}
	maps.DeleteFunc(all, func(name string, _ any) bool { return !known[name] })
	if token == "" {
		all["insert_deduplicate"] = 0 // which counts for nothing where deduplicate_insert is known
		if known["deduplicate_insert"] {
			all["deduplicate_insert"] = "disable"
		}
	} else {
		all["insert_deduplication_token"] = token
	}
	if d.cfg.InsertQuorum != "" {
		all["insert_quorum"] = d.cfg.InsertQuorum
	}
	return all, nil
}

// insert sends the block as one insert under the token; without a token it is not deduplicated.
func (d *DB) insert(ctx context.Context, token string, b *block) error {
	if b.rows == 0 {
		return nil
	}
	if err := b.check(); err != nil {
		return err
	}
	err := d.request(ctx, "insert "+b.table, func(ctx context.Context) error {
		settings, err := d.settings(ctx, token)
		if err != nil {
			return err
		}
		types, err := d.types(ctx, b)
		if err != nil {
			return err
		}
		ctx = ch.Context(ctx, ch.WithSettings(settings), ch.WithColumnNamesAndTypes(types))
		batch, err := d.conn.PrepareBatch(ctx, b.statement())
		if err != nil {
			return err
		}
		defer batch.Close()
		for i, values := range b.values {
			if err := batch.Column(i).Append(values); err != nil {
				return fmt.Errorf("column %s: %w: %w", b.names[i], ch.ErrBatchInvalid, err)
			}
		}
		return batch.Send()
	})
	if err == nil {
		d.metrics.inserts.WithLabelValues(b.table).Inc()
		d.metrics.insertRows.WithLabelValues(b.table).Add(float64(b.rows))
	}
	d.doubt(b.table, err)
	return err
}

// doubt forgets the columns of a table that refused an insert: somebody may have changed them, and changed back they would be
// as unknown as before.
func (d *DB) doubt(table string, err error) {
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonSchema && e.Reason != ReasonData {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.columns, table)
}

// insertSelect runs an INSERT SELECT under the token. Its SELECT ends with ORDER BY ALL.
func (d *DB) insertSelect(ctx context.Context, op, token, sql string, args ...any) error {
	return d.request(ctx, op, func(ctx context.Context) error {
		settings, err := d.settings(ctx, token)
		if err != nil {
			return err
		}
		return d.conn.Exec(ch.Context(ctx, ch.WithSettings(d.waiting(settings))), sql, args...)
	})
}

// waiting makes the engine answer over HTTP only when a statement is over: the driver does not read the answer, where an
// exception would otherwise hide behind a status that was sent too early.
func (d *DB) waiting(s ch.Settings) ch.Settings {
	if d.cfg.Protocol == "http" {
		s["wait_end_of_query"] = 1
	}
	return s
}

// types tells the driver the columns' types over HTTP, where it would otherwise ask before each insert.
func (d *DB) types(ctx context.Context, b *block) ([]ch.ColumnNameAndType, error) {
	d.mu.Lock()
	types := d.columns[b.table]
	d.mu.Unlock()
	if types == nil {
		types = map[string]string{}
		rows, err := d.conn.Query(ctx, queryText("columns.sql"), ch.Named("table", b.table))
		if err != nil {
			return nil, fmt.Errorf("describe: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var name, kind string
			if err := rows.Scan(&name, &kind); err != nil {
				return nil, fmt.Errorf("describe: %w", err)
			}
			types[name] = kind
		}
		if err := rows.Err(); err != nil {
			return nil, fmt.Errorf("describe: %w", err)
		}
	}
	out := make([]ch.ColumnNameAndType, len(b.names))
	for i, n := range b.names {
		if types[n] == "" {
			return nil, &Error{Op: "insert " + b.table, Reason: ReasonSchema, Err: fmt.Errorf("there is no column %s; is the schema migrated?", n)}
		}
		out[i] = ch.ColumnNameAndType{Name: n, Type: types[n]}
	}
	d.mu.Lock()
	d.columns[b.table] = types
	d.mu.Unlock()
	return out, nil
}
