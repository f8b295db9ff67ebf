package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tocsin-project/tocsin/internal/cli"
	"github.com/tocsin-project/tocsin/internal/clickhouse"
)

// OpenStored opens the history that a daemon with this configuration has stored, for commands that only read it.
func OpenStored(ctx context.Context, file string) (*cli.Stored, error) {
	c, err := LoadConfig(file)
	if err != nil {
		return nil, err
	}
	f, err := LoadFiles(c)
	if err != nil {
		return nil, err
	}
	db, err := clickhouse.Open(c.ClickHouse, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	if err := db.Ping(ctx); err != nil {
		_ = db.Close() // the first error says it
		return nil, fmt.Errorf("reading stored history: ClickHouse at %s: %s", strings.Join(c.ClickHouse.Addresses, ", "), brief(err))
	}
	return &cli.Stored{
		History: clickhouse.NewHistory(db), Catalogue: f.Catalogue, Rules: f.Rules, Routes: f.Routes,
		RulesDir: c.path(c.Files.Rules), Close: db.Close, ExternalLabels: c.ExternalLabels, Binary: binary(version(Version())),
	}, nil
}
