package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// CheckQueries asks the configuration's database what it makes of the queries of sql rules. None is run.
func CheckQueries(ctx context.Context, file string) ([]string, error) {
	c, f, err := load(file)
	if err != nil {
		return nil, err
	}
	db, err := clickhouse.Open(c.ClickHouse, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	defer func() { _ = db.Close() }() // it only reads
	if err := db.Ping(ctx); err != nil {
		return nil, fmt.Errorf("checking queries: ClickHouse at %s: %s", strings.Join(c.ClickHouse.Addresses, ", "), brief(err))
	}
	n, err := checkQueries(ctx, clickhouse.NewQuerier(db), f.Rules)
	below(c.path(c.Files.Rules), err)
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("queries: %d, each is understood by ClickHouse", n)}, nil
}

func checkQueries(ctx context.Context, q *clickhouse.Querier, rules *rule.Set) (n int, err error) {
	var errs strictyaml.Errors
	for gi := range rules.Groups {
		g := &rules.Groups[gi]
		for ri := range g.Rules {
			r := &g.Rules[ri]
			question, ok := detect.QuestionAt(g, r, time.Now())
			if !ok {
				continue
			}
			n++
			err := q.Check(ctx, question)
			var asked *detect.QueryError
			switch {
			case err == nil:
			case !errors.As(err, &asked) || asked.Reason == detect.QueryFailed || asked.Reason == detect.QueryTimeout:
				return n, fmt.Errorf("checking the query of %s: %w", r.Alert, err)
			default:
				text := &r.Params.(*rule.SQL).Query
				pos := text.At(r.Pos, 0)
				if line, col, ok := q.Place(err); ok {
					pos = text.AtLine(r.Pos, line, col)
				}
				errs = append(errs, pos.Errorf("%s: query: %v", r.Alert, err))
			}
		}
	}
	return n, errs.Err()
}
