package app

import (
	"context"
	"errors"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
)

// afterSchema reads the incident log once the tables are there: before the first start has made them there is nothing to read,
// and no error in that.
type afterSchema struct {
	respond.IncidentLog
	schema *schema
}

func (a afterSchema) After(ctx context.Context, c respond.Cursor, limit int) ([]incident.Event, respond.Cursor, respond.Head, error) {
	if !a.schema.wait(ctx) {
		return nil, c, respond.Head{}, errNoSchema
	}
	return a.IncidentLog.After(ctx, c, limit)
}

func (a afterSchema) Open(ctx context.Context, since time.Time) ([]incident.Event, error) {
	if !a.schema.wait(ctx) {
		return nil, errNoSchema
	}
	return a.IncidentLog.Open(ctx, since)
}

var errNoSchema = errors.New("ClickHouse has not answered since the start")
