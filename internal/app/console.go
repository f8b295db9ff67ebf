package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/console"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/outbox"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

var consoleModule = fx.Module("console",
	component("console"),
	fx.Provide(clickhouse.NewReader, newStatus, newConsole),
)

func newConsole(c *Config, r *clickhouse.Reader, status func() console.Status, client *kafka.Client, l *lead, box *outbox.Mirror, silences *silence.Store, logger *slog.Logger) (*console.Console, error) {
	return console.New(console.Options{
		Reader: reader{r}, Series: reader{r}.series, Status: status, Deliveries: deliveries(l, box, logger), Commander: commander{client.NewProducer(), c.Kafka.CommandsTopic},
		Drill: drill(c, l, logger), Silences: silences, Logger: logger, Names: names(&c.HTTP),
	})
}

// names are those by which the configuration says that the server is reached.
func names(c *HTTPConfig) (out []string) {
	if host, _, err := net.SplitHostPort(c.Listen); err == nil {
		out = append(out, strings.ToLower(host))
	}
	if u, err := url.Parse(c.ExternalURL); err == nil {
		out = append(out, strings.ToLower(u.Hostname()))
	}
	return out
}

// reader fits the database's reader to what the console asks for.
type reader struct{ r *clickhouse.Reader }

var _ console.Reader = reader{}

func (r reader) Incidents(ctx context.Context, openOnly bool, limit int) ([]incident.Incident, error) {
	f := clickhouse.IncidentFilter{Limit: limit}
	if openOnly {
		for s := incident.Suspected; s <= incident.Dismissed; s++ {
			if s.Open() {
				f.States = append(f.States, s)
			}
		}
	}
	return r.r.Incidents(ctx, f)
}

func (r reader) Events(ctx context.Context, id string) ([]incident.Event, error) {
	_, events, err := r.r.Incident(ctx, id)
	if errors.Is(err, clickhouse.ErrNotFound) {
		return nil, console.ErrNotFound
	}
	return events, err
}

const (
	maxCurves  = 8
	curveLead  = 15 * time.Minute // before it began, to see what was usual
	curveTail  = 10 * time.Minute
	curveRange = 12 * time.Hour
)

// series reads how the worst paths of an incident have failed, minute by minute.
func (r reader) series(ctx context.Context, in incident.Incident) (out []console.Series, err error) {
	from, to := in.StartedAt.Add(-curveLead).Truncate(time.Minute), in.StartedAt.Add(curveRange)
	if !in.ResolvedAt.IsZero() && in.ResolvedAt.Add(curveTail).Before(to) {
		to = in.ResolvedAt.Add(curveTail)
	}
	paths := slices.Clone(in.Paths)
	slices.SortStableFunc(paths, func(a, b incident.PathImpact) int { return cmp.Compare(b.Failures, a.Failures) })
	for _, p := range paths[:min(maxCurves, len(paths))] {
		rates, err := r.r.FailureRates(ctx, p.Path, from, to)
		if err != nil {
			return nil, err
		}
		s := console.Series{Name: p.Path.String()}
		for _, x := range rates {
			if share, ok := x.Share(); ok {
				s.Points = append(s.Points, console.Point{At: x.Minute, Share: share})
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// commander puts a person's word onto the commands topic, where the leading detector reads it.
type commander struct {
	producer *kafka.Producer
	topic    string
}

var _ console.Commander = commander{}

func (c commander) Command(ctx context.Context, cmd incident.Command) error {
	value, err := json.Marshal(cmd)
	if err != nil {
		return err
	}
	return c.producer.Produce(ctx, c.topic, 0, kafka.Record{Key: []byte(cmd.Incident), Value: value})
}

// deliveries reads the outbox: what each place should have been told, has been, and how it went. The process that leads
// knows; the others look into what it wrote. Pages ask every two seconds, so looking must not change anything.
func deliveries(l *lead, box *outbox.Mirror, logger *slog.Logger) console.Deliveries {
	return func(id string) (out []console.Delivery) {
		records, leads := l.records(id)
		if !leads {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			values, err := box.Peek(ctx)
			if err != nil {
				logger.Warn("reading the outbox failed", "err", err)
				return nil
			}
			records = stored(values, id)
		}
		for i := range records {
			out = append(out, delivery(&records[i]))
		}
		slices.SortFunc(out, func(a, b console.Delivery) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Incident+a.Receiver, b.Incident+b.Receiver))
		})
		return out
	}
}

func stored(values map[string][]byte, id string) (out []respond.Record) {
	for key, value := range values {
		var r respond.Record
		if strings.Contains(key, "/") && json.Unmarshal(value, &r) == nil && (id == "" || r.Incident == id || slices.Contains(r.Members, id)) {
			out = append(out, r)
		}
	}
	return out
}

func delivery(r *respond.Record) console.Delivery {
	d := console.Delivery{Incident: r.Incident, Receiver: r.Receiver + " (" + r.Kind + ")", Action: string(r.Want.Status), Outcome: "delivered", At: r.CreatedAt}
	for _, t := range []time.Time{r.EditedAt, r.ClosedAt} { // what it was told last
		if t.After(d.At) {
			d.At = t
		}
	}
	switch {
	case r.Joined != "":
		d.Outcome = "part of a summary"
	case r.Failure != "" && r.Permanent:
		d.Outcome, d.Detail = "failed", string(r.Failure)
	case r.Failure != "":
		d.Outcome, d.Detail = "being retried", fmt.Sprintf("%s, %d attempts", r.Failure, r.Attempts)
	case r.Got.Status != r.Want.Status:
		d.Outcome = "on its way"
	}
	if d.Action == "" {
		d.Action, d.Outcome = "nothing", "not told: held back or muted"
	}
	if n := len(r.Pages); n > 0 {
		d.Detail = strings.TrimPrefix(d.Detail+fmt.Sprintf("; paged at %s", r.Pages[n-1].UTC().Format("15:04:05")), "; ")
	}
	return d
}

// drill sends a TEST page through the routes and receivers with an outbox of its own.
func drill(c *Config, l *lead, logger *slog.Logger) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		f, all := l.inForce()
		ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
		defer cancel()
		results, err := respond.Drill(ctx, respond.Options{
			Routes: f.Routes, Places: all, Store: &outbox.Memory{}, Settings: c.Respond.Settings, Logger: logger,
		}, map[string]string{"page": "true", "severity": incident.Critical.String()})
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, r := range results {
			fmt.Fprintf(&b, "%s (%s): opened within %s, closed\n", r.Place, strings.Join(r.Receivers, ", "), r.OpenedWithin.Round(time.Millisecond))
		}
		fmt.Fprintf(&b, "%d places were told TEST and told that it is over", len(results))
		return b.String(), nil
	}
}

// newStatus gathers how Tocsin itself fares from all its parts.
func newStatus(v version, loop *ingest.Loop, l *lead, p *selfpage.Pager, s *schema, t *topics) func() console.Status {
	return func() console.Status {
		h, in := l.Health(), loop.Health()
		st := console.Status{
			Version: string(v), Tick: h.Tick, To: h.To, Clock: h.Clock, Leading: l.leading(),
			Partitions: make([]console.Partition, 0, len(in.Partitions)),
		}
		if !h.To.IsZero() {
			st.Lag = max(h.Clock.Sub(h.To), 0)
		}
		for _, x := range in.Partitions {
			part := console.Partition{Stream: string(x.Stream), Topic: x.Topic, Partition: x.Partition, Lag: x.Lag, Watermark: x.Watermark}
			if !x.BlockedSince.IsZero() {
				part.Problem = x.LastError // the last error stays when it is over
			}
			st.Partitions = append(st.Partitions, part)
		}
		st.Problems, st.NotReady = troubles(s, t, in.Generations > 0, p)
		return st
	}
}

// troubles are all of Tocsin's own, and those for which this process is not ready.
func troubles(s *schema, t *topics, joined bool, p *selfpage.Pager) (all, notReady []string) {
	all, notReady = []string{}, []string{}
	for _, w := range []struct {
		up   chan struct{}
		what string
	}{{s.ready, "waiting for ClickHouse"}, {t.ready, "waiting for Kafka"}} {
		select {
		case <-w.up:
		default:
			notReady = append(notReady, w.what)
		}
	}
	if len(notReady) == 0 && !joined {
		why := "has not joined the consumer group yet"
		if missing := t.missingNow(); len(missing) > 0 {
			why += ": no such topic as " + strings.Join(missing, ", ") + "; Tocsin makes only those that begin with " + ownPrefix
		}
		notReady = append(notReady, why)
	}
	all = append(all, notReady...)
	if ok, causes := p.Healthy(); !ok {
		for _, c := range causes {
			all = append(all, selfpage.Causes[c])
			if c != selfpage.RulesUnreadable {
				notReady = append(notReady, selfpage.Causes[c])
			}
		}
	}
	return all, notReady
}
