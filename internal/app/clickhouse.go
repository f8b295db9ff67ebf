package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

// clickhouseModule opens the database and brings its schema up to date. That the database is down at the start is no
// reason to end: the loops wait, and the self-page says so.
var clickhouseModule = fx.Module("clickhouse",
	component("clickhouse"),
	fx.Provide(newClickHouse, newSchema, clickhouse.NewStore, clickhouse.NewTimeline, clickhouse.NewQuerier, clickhouse.NewIncidentLog, clickhouse.NewSilences),
)

func newClickHouse(lc fx.Lifecycle, c *Config, logger *slog.Logger, reg *prometheus.Registry) (*clickhouse.DB, error) {
	db, err := clickhouse.Open(c.ClickHouse, logger, clickhouse.NewMetrics(reg))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	lc.Append(fx.StopHook(db.Close))
	return db, nil
}

// schema tells when the tables are there.
type schema struct{ ready chan struct{} }

// wait returns when the schema is up to date, or false when ctx ends before.
func (s *schema) wait(ctx context.Context) bool {
	select {
	case <-s.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

const (
	// watchEvery is how often the database is asked whether it lives. Ingest and detect notice by themselves, but an
	// installation without traffic would not.
	watchEvery   = 5 * time.Second
	watchTimeout = 5 * time.Second
)

func newSchema(lc fx.Lifecycle, stop fx.Shutdowner, db *clickhouse.DB, pager *selfpage.Pager, logger *slog.Logger) *schema {
	s := &schema{ready: make(chan struct{})}
	health := pager.From("schema")
	background(lc, stop, logger, "schema", func(ctx context.Context) error {
		migrated := false
		down := complaint{logger: logger, what: "ClickHouse"}
		for {
			err := s.look(ctx, db, &migrated, logger)
			if err != nil && !clickhouse.Retryable(err) && !migrated && ctx.Err() == nil {
				return err // a schema we do not know: another attempt will not change that
			}
			if ctx.Err() == nil {
				down.look(err, time.Now())
				detail := ""
				if err != nil {
					detail = brief(err)
				}
				health.Report(selfpage.ClickHouseUnreachable, err == nil, detail)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait(err == nil, watchEvery)):
			}
		}
	})
	return s
}

func (s *schema) look(ctx context.Context, db *clickhouse.DB, migrated *bool, logger *slog.Logger) error {
	if *migrated {
		ctx, cancel := context.WithTimeout(ctx, watchTimeout)
		defer cancel()
		return db.Ping(ctx)
	}
	began := time.Now()
	if err := db.Migrate(ctx); err != nil {
		return fmt.Errorf("bringing the schema up to date: %w", err)
	}
	*migrated = true
	close(s.ready)
	logger.Info("schema is up to date", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// brief is as much of an error as a woken person reads: its first line, without the stack that ClickHouse sends along, and
// without the long address of a request that did not get through, which would push the reason out.
func brief(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	line, _, _ = strings.Cut(line, " Stack trace")
	return respond.Cut(line, 200)
}

// wait is shorter while something is wrong, to notice soon that it no longer is.
func wait(healthy bool, usual time.Duration) time.Duration {
	if healthy {
		return usual
	}
	return time.Second
}
