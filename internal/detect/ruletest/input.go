package ruletest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// check finds lines that say nothing, or several things.
func (l *line) check() error {
	n := 0
	for _, has := range []bool{l.Requests.Service != "", l.Gauge != "", l.Tickets != "" || l.Text != "", l.Change != "", l.Alert != "", l.Result != ""} {
		if has {
			n++
		}
	}
	switch {
	case n != 1:
		return l.Pos.Errorf("an input line is exactly one of requests, gauge, tickets (or text), change, alert and result")
	case l.Result == "" && (l.Rows != nil || l.Error != ""), l.Rows != nil && l.Error != "":
		return l.Pos.Errorf("rows, or an error, are what the query of a sql rule gives: name the rule with result")
	case l.Change == "" && l.Alert == "" && l.To <= l.From:
		return l.Pos.Errorf("the line ends at %s, before it begins", l.To)
	case l.Requests.Service != "" && l.PerSecond <= 0:
		return l.Pos.Errorf("requests want per_second")
	case l.Gauge != "" && l.Metric == "":
		return l.Pos.Errorf("a gauge wants a metric")
	case l.Failing+l.Rejected+l.Throttled > 1:
		return l.Pos.Errorf("failing, rejected and throttled are together more than all")
	}
	return nil
}

// feed gives the line's events in the bucket that begins at b after the start; carry keeps fractions of requests.
func (l *line) feed(in *detect.Inputs, start time.Time, b time.Duration, carry *fractions) {
	from, to := l.From.Std(), l.To.Std()
	switch {
	case l.Result != "":
	case l.Change != "":
		l.feedChange(in, start, b)
	case l.Alert != "":
		l.feedAlert(in, start, b)
	case b < from.Truncate(signal.BucketSize) || b >= to:
	case l.Requests.Service != "":
		in.Cells = append(in.Cells, l.cell(start.Add(b), carry))
	case l.Gauge != "":
		for at := from; at < to; at += max(l.Every.Std(), time.Second) {
			if at >= b && at < b+signal.BucketSize {
				in.Gauges = append(in.Gauges, l.gauge(start, at))
			}
		}
	default:
		for i := range l.Count {
			at := from + time.Duration(float64(to-from)*float64(i)/float64(l.Count))
			if at >= b && at < b+signal.BucketSize {
				in.Tickets = append(in.Tickets, signal.Ticket{
					Time: start.Add(at), ID: fmt.Sprintf("%s-%s-%d", l.Tickets, l.Pos, i), Area: l.Tickets, Text: l.Text,
					Account: fmt.Sprintf("account-%d", i%max(l.Accounts, 1)),
				})
			}
		}
	}
}

func (l *line) feedChange(in *detect.Inputs, start time.Time, b time.Duration) {
	for _, p := range []struct {
		at    time.Duration
		phase signal.Phase
	}{{l.From.Std(), signal.Started}, {l.To.Std(), signal.Finished}} {
		if p.phase == signal.Finished && l.To <= l.From || p.at < b || p.at >= b+signal.BucketSize {
			continue
		}
		in.Changes = append(in.Changes, signal.Change{
			Time: start.Add(p.at), ID: l.Change, Kind: cmp.Or(l.Kind, signal.Deploy), Phase: p.phase, Target: l.Target, Title: l.Title,
		})
	}
}

func (l *line) feedAlert(in *detect.Inputs, start time.Time, b time.Duration) {
	a := signal.Alert{Fingerprint: l.Pos.String(), Status: "firing", StartsAt: start.Add(l.From.Std())}
	labels := []signal.Attr{{Name: "alertname", Value: l.Alert}}
	for n, v := range l.Labels {
		labels = append(labels, signal.Attr{Name: n, Value: v})
	}
	a.Labels, a.Annotations = signal.AttributesOf(labels...), signal.AttributesOf(signal.Attr{Name: "summary", Value: l.Summary})
	if at := l.From.Std(); at >= b && at < b+signal.BucketSize {
		a.Time = start.Add(at)
		in.Alerts = append(in.Alerts, a)
	}
	if at := l.To.Std(); l.To > l.From && at >= b && at < b+signal.BucketSize {
		a.Time, a.Status = start.Add(at), "resolved"
		in.Alerts = append(in.Alerts, a)
	}
}

// fractions carries what is less than one request over to the next bucket.
type fractions struct {
	total, slow float64
	retried     float64
	outcomes    [signal.NumOutcomes]float64
	account     int
}

func take(v *float64, more float64) uint64 {
	*v += more
	n := math.Floor(*v + 1e-9)
	*v -= n
	return uint64(n)
}

func (l *line) cell(at time.Time, f *fractions) signal.Cell {
	c := signal.Cell{Bucket: at, Key: signal.Key{Path: l.Requests.Path, Attributes: signal.NewAttributes(l.Attrs)}}
	n := l.PerSecond * signal.BucketSize.Seconds()
	total := take(&f.total, n)
	for o, share := range map[signal.Outcome]float64{
		signal.Failure: float64(l.Failing), signal.Rejected: float64(l.Rejected), signal.Throttled: float64(l.Throttled),
	} {
		c.Outcomes[o] = min(take(&f.outcomes[o], n*share), total)
	}
	c.Outcomes[signal.Success] = total - min(total, c.Outcomes[signal.Failure]+c.Outcomes[signal.Rejected]+c.Outcomes[signal.Throttled])
	c.Retries = min(take(&f.retried, n*float64(l.Retried)), total)
	slow := min(take(&f.slow, n*float64(l.SlowShare)), total)
	c.Latency.Add(l.Latency.Std(), slow)
	c.Latency.Add(50*time.Millisecond, total-slow)
	for range c.Outcomes[signal.Failure] {
		c.Accounts.Add(signal.HashAccount(fmt.Sprintf("account-%d", f.account%max(l.Accounts, 1))))
		f.account++
	}
	return c
}

// gauge is a straight line that swings in a fixed way: a test must not depend on luck.
func (l *line) gauge(start time.Time, at time.Duration) signal.Gauge {
	v := l.Value
	if l.Until != nil {
		v += (*l.Until - l.Value) * float64(at-l.From.Std()) / float64(l.To.Std()-l.From.Std())
	}
	s := at.Seconds()
	v += l.Noise * (math.Sin(s/7.3) + math.Sin(s/23.1+1) + math.Sin(s/91+2)) / 2
	return signal.Gauge{Time: start.Add(at), Resource: l.Gauge, Metric: l.Metric, Value: v, Limit: l.Limit, Attributes: signal.NewAttributes(l.Attrs)}
}

// merge sums cells of the same key, as a tick's inputs have them.
func merge(cells []signal.Cell) []signal.Cell {
	slices.SortStableFunc(cells, func(a, b signal.Cell) int { return a.Key.Compare(b.Key) })
	out := cells[:0]
	for _, c := range cells {
		if n := len(out); n > 0 && out[n-1].Key == c.Key {
			out[n-1].Merge(&c)
			continue
		}
		out = append(out, c)
	}
	return out
}
