package clickhouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Reader answers the console and the command line. It is safe for use by many goroutines.
type Reader struct{ db *DB }

// NewReader makes a reader over an open database, which stays the caller's.
func NewReader(db *DB) *Reader { return &Reader{db: db} }

// ErrNotFound says that there is no such incident.
var ErrNotFound = errors.New("not found")

// rowsMax bounds every answer; Limit can only lower it.
const rowsMax = 10_000

// IncidentFilter narrows Incidents; zero fields do not.
type IncidentFilter struct {
	States   []incident.State
	Service  string
	Area     string
	From, To time.Time // that lasted into, or began in, [From, To)
	Limit    int
}

// Incidents returns incidents as they are now, those that began last first.
func (r *Reader) Incidents(ctx context.Context, f IncidentFilter) (out []incident.Incident, err error) {
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = s.String()
	}
	err = r.db.query(ctx, "read incidents", queryText("incidents.sql"), func(rows driver.Rows) error {
		var details string
		var i incident.Incident
		if err := rows.Scan(&details); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(details), &i); err != nil {
			return fmt.Errorf("decode incident: %w", err)
		}
		out = append(out, i)
		return nil
	}, append(between(f.From, f.To, f.Limit), ch.Named("all_states", flag(len(states) == 0)), ch.Named("states", states),
		ch.Named("service", f.Service), ch.Named("area", f.Area))...)
	return out, err
}

func between(from, to time.Time, limit int) []any {
	if to.IsZero() {
		to = timeMax
	}
	if limit <= 0 || limit > rowsMax {
		limit = rowsMax
	}
	return []any{ch.Named("from", toDB(from).UnixMilli()), ch.Named("to", toDB(to).UnixMilli()), ch.Named("limit", limit)}
}

// Incident returns one incident as it is now with all that happened to it, or ErrNotFound.
func (r *Reader) Incident(ctx context.Context, id string) (incident.Incident, []incident.Event, error) {
	events, err := NewIncidentLog(r.db).events(ctx, render("events_of.sql", nil), ch.Named("incident", id))
	if err != nil {
		return incident.Incident{}, nil, err
	}
	if len(events) == 0 {
		return incident.Incident{}, nil, fmt.Errorf("incident %s: %w", id, ErrNotFound)
	}
	return events[len(events)-1].After, events, nil
}

// FindingFilter narrows Findings; zero fields do not.
type FindingFilter struct {
	Rule, Service, Resource, Area string
	From, To                      time.Time
	Limit                         int
}

// Findings returns changes of state of rules, newest first.
func (r *Reader) Findings(ctx context.Context, f FindingFilter) (out []incident.Transition, err error) {
	err = r.db.query(ctx, "read findings", render("findings.sql", nil), func(rows driver.Rows) error {
		t, err := scanTransition(rows)
		out = append(out, t)
		return err
	}, append(between(f.From, f.To, f.Limit), ch.Named("rule", f.Rule), ch.Named("service", f.Service), ch.Named("resource", f.Resource),
		ch.Named("area", f.Area))...)
	return out, err
}

func scanTransition(rows driver.Rows) (t incident.Transition, err error) {
	var at int64
	var from, state string
	var active, fired, ended *int64
	var attributes map[string]string
	var accounts []uint64
	var partial uint8
	f := &t.Finding
	if err := rows.Scan(&at, &f.Rule, &f.Kind, &from, &state, &f.Key.Service, &f.Key.Operation, &f.Key.Access, &f.Key.Resource, &f.Key.Metric,
		&f.Key.Area, &attributes, &active, &fired, &ended, &f.Value, &f.Requests, &f.Failures, &accounts, &f.Labels, &f.Annotations, &f.Explain,
		&partial); err != nil {
		return t, err
	}
	t.At, f.ActiveAt, f.FiredAt, f.EndedAt = fromMillis(at), fromNullableMillis(active), fromNullableMillis(fired), fromNullableMillis(ended)
	f.Key.Rule, f.Key.Attributes, f.Partial = f.Rule, signal.NewAttributes(attributes), partial != 0
	if f.Labels, f.Annotations = someOf(f.Labels), someOf(f.Annotations); len(accounts) > 0 {
		f.Accounts = accounts
	}
	return t, errors.Join(t.From.UnmarshalText([]byte(from)), f.State.UnmarshalText([]byte(state)))
}

// Warnings returns warnings, newest first.
func (r *Reader) Warnings(ctx context.Context, from, to time.Time, limit int) (out []incident.Warning, err error) {
	err = r.db.query(ctx, "read warnings", render("warnings.sql", nil), func(rows driver.Rows) error {
		w, err := scanWarning(rows)
		out = append(out, w)
		return err
	}, between(from, to, limit)...)
	return out, err
}

func scanWarning(rows driver.Rows) (w incident.Warning, err error) {
	var at int64
	var exhausted *int64
	var suspects string
	if err := rows.Scan(&at, &w.Resource, &w.Metric, &w.Value, &w.Limit, &exhausted, &w.Rule, &w.Guard, &w.Incident, &suspects); err != nil {
		return w, err
	}
	w.At, w.ExhaustedAt = fromMillis(at), fromNullableMillis(exhausted)
	if err := json.Unmarshal([]byte(suspects), &w.Suspects); err != nil {
		return w, fmt.Errorf("decode suspects: %w", err)
	}
	return w, nil
}

// DeadLetter is a record that could not be counted, with where it came from.
type DeadLetter struct {
	Stream      signal.Stream
	Topic       string
	Incarnation uint32
	Partition   int32
	Offset      int64
	Time        time.Time
	Reason      string
	Detail      string
	Payload     []byte
	Size        int
}

// DeadLetters returns the records that were put away last.
func (r *Reader) DeadLetters(ctx context.Context, limit int) (out []DeadLetter, err error) {
	err = r.db.query(ctx, "read dead letters", queryText("dead_letters.sql"), func(rows driver.Rows) error {
		var d DeadLetter
		var at int64
		var size uint64
		var stream, payload string
		if err := rows.Scan(&stream, &d.Topic, &d.Incarnation, &d.Partition, &d.Offset, &at, &d.Reason, &d.Detail, &payload, &size); err != nil {
			return err
		}
		d.Stream, d.Time, d.Payload, d.Size = signal.Stream(stream), fromMillis(at), []byte(payload), int(size)
		out = append(out, d)
		return nil
	}, between(time.Time{}, time.Time{}, limit)...)
	return out, err
}

// Rate is what one path did in one minute of event time.
type Rate struct {
	Minute                                                      time.Time
	Requests, Successes, Failures, Rejected, Throttled, Retries uint64
}

// Share is the failure rate; without requests that count there is none.
func (r Rate) Share() (share float64, ok bool) {
	if n := r.Successes + r.Failures; n > 0 {
		return float64(r.Failures) / float64(n), true
	}
	return 0, false
}

// FailureRates returns a path's minutes in [from, to) in order; minutes without requests are left out.
func (r *Reader) FailureRates(ctx context.Context, p signal.Path, from, to time.Time) (out []Rate, err error) {
	err = r.db.query(ctx, "read failure rates", queryText("failure_rates.sql"), func(rows driver.Rows) error {
		var rate Rate
		var minute int64
		if err := rows.Scan(&minute, &rate.Requests, &rate.Successes, &rate.Failures, &rate.Rejected, &rate.Throttled, &rate.Retries); err != nil {
			return err
		}
		rate.Minute = fromMillis(minute)
		out = append(out, rate)
		return nil
	}, append(between(from, to, 0)[:2], ch.Named("service", p.Service), ch.Named("operation", p.Operation), ch.Named("access", p.Access.String()))...)
	return out, err
}

// Why is all that is stored about how an incident came about.
type Why struct {
	Incident incident.Incident
	Events   []incident.Event
	// Transitions of the findings that are attached, oldest first.
	Transitions []incident.Transition
}

// whyMargin is how long before its start an incident's findings may have begun to change.
const whyMargin = 2 * time.Hour

// Why explains one incident, or returns ErrNotFound.
func (r *Reader) Why(ctx context.Context, id string) (Why, error) {
	var out Why
	var err error
	if out.Incident, out.Events, err = r.Incident(ctx, id); err != nil {
		return out, err
	}
	attached := map[incident.FindingKey]bool{}
	for _, a := range out.Incident.Findings {
		k := a.Finding.Key
		k.Rule = a.Finding.Rule // which a key's JSON leaves out
		attached[k] = true
	}
	began := out.Incident.StartedAt
	if began.IsZero() {
		began = out.Events[0].At
	}
	found, err := r.Findings(ctx, FindingFilter{From: began.Add(-whyMargin), To: out.Events[len(out.Events)-1].At.Add(time.Millisecond)})
	if err != nil {
		return out, err
	}
	for i := len(found) - 1; i >= 0; i-- {
		if attached[found[i].Finding.Key] {
			out.Transitions = append(out.Transitions, found[i])
		}
	}
	return out, nil
}
