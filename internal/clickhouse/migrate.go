package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/schemas"
)

// ErrChangedMigration says that a file that was applied before has another content now.
var ErrChangedMigration = errors.New("an applied migration was changed")

const codeUnknownDatabase = 81

// Migrate makes the database if it is missing and brings its schema to this program's version. Several processes may
// call it at once: one of them works, the others wait. It refuses a schema that it does not know.
func (d *DB) Migrate(ctx context.Context) error {
	if err := d.migrate(ctx, schemas.ClickHouse); err != nil {
		return fmt.Errorf("migrate database %s: %w", d.cfg.Database, err)
	}
	if err := d.retain(ctx); err != nil {
		return fmt.Errorf("migrate database %s: %w", d.cfg.Database, err)
	}
	return nil
}

func (d *DB) migrate(ctx context.Context, files fs.FS) error {
	migrations, err := loadMigrations(files)
	if err != nil {
		return err
	}
	if err := d.createDatabase(ctx); err != nil {
		return err
	}
	for _, statement := range split(queryText("bootstrap.sql")) {
		if err := d.exec(ctx, "create schema tables", statement); err != nil {
			return err
		}
	}
	// Without the lock first: most starts find nothing to do.
	if pending, err := d.pending(ctx, migrations); err != nil || len(pending) == 0 {
		return err
	}
	l, err := takeLock(ctx, d)
	if err != nil {
		return err
	}
	err = d.apply(ctx, l, migrations)
	// What was applied counts even if ctx ended meanwhile; the lock would otherwise hold others up for its whole lease.
	return errors.Join(err, l.release(context.WithoutCancel(ctx)))
}

func (d *DB) apply(ctx context.Context, l *lock, migrations []migration) error {
	pending, err := d.pending(ctx, migrations) // again: who had the lock before has worked
	if err != nil {
		return err
	}
	for _, m := range pending {
		for i, statement := range m.statements {
			if err := l.check(ctx); err != nil {
				return err
			}
			if err := d.exec(ctx, fmt.Sprintf("migration %s, statement %d", m.name, i+1), statement); err != nil {
				return err
			}
		}
		b := newBlock("schema_migrations", 1)
		same(b, "version", m.version)
		same(b, "name", m.name)
		same(b, "checksum", m.checksum)
		if err := d.insert(ctx, fmt.Sprintf("migration/%d", m.version), b); err != nil {
			return err
		}
		d.logger.Info("Migration applied", "name", m.name, "statements", len(m.statements))
	}
	return nil
}

// pending returns the migrations that are not applied yet.
func (d *DB) pending(ctx context.Context, migrations []migration) ([]migration, error) {
	applied := 0
	err := d.query(ctx, "read applied migrations", queryText("applied.sql"), func(r driver.Rows) error {
		var version uint32
		var name, checksum string
		if err := r.Scan(&version, &name, &checksum); err != nil {
			return err
		}
		applied++
		if int(version) != applied {
			return &Error{Op: "check migrations", Reason: ReasonSchema, Err: fmt.Errorf("migration %d is applied, but %d is not", version, applied)}
		}
		if applied > len(migrations) {
			return &Error{Op: "check migrations", Reason: ReasonSchema, Err: fmt.Errorf(
				"the database has migration %s, which this program does not know: it is older than the schema", name)}
		}
		if m := migrations[applied-1]; m.checksum != checksum {
			return &Error{Op: "check migrations", Reason: ReasonSchema, Err: fmt.Errorf("%w: %s was applied with checksum %s and has %s now; "+
				"put the file back as it was and make the change in a new one", ErrChangedMigration, m.name, checksum, m.checksum)}
		}
		return nil
	})
	return migrations[min(applied, len(migrations)):], err
}

func (d *DB) exec(ctx context.Context, op, statement string) error {
	err := d.request(ctx, "migrate", func(ctx context.Context) error {
		return d.conn.Exec(ch.Context(ctx, ch.WithSettings(d.waiting(ch.Settings{}))), statement)
	})
	return fail(op, err)
}

// createDatabase makes the database through a connection of its own, because one to a missing database fails. It is not
// tried where the database is there: the user may not be allowed to.
func (d *DB) createDatabase(ctx context.Context) error {
	err := d.Ping(ctx)
	var e *Error
	if err == nil || !errors.As(err, &e) || e.Code != codeUnknownDatabase {
		return err
	}
	opts, err := d.cfg.options()
	if err != nil {
		return err
	}
	opts.Auth.Database = ""
	conn, err := ch.Open(opts)
	if err != nil {
		return fail("open ClickHouse", err)
	}
	defer conn.Close()
	return d.request(ctx, "create database", func(ctx context.Context) error {
		return conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS `"+d.cfg.Database+"`")
	})
}
