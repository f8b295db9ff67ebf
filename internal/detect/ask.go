package detect

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// asking is how many queries run at once. What waits for one of these does not count towards its timeout.
	asking = 4
	// answersATick bounds what one tick carries; the others wait for the next.
	answersATick = 100
)

// asker puts the questions of sql rules beside the ticks: a tick takes along what has been answered by then, and waits for nothing. Of
// each rule one question is open at a time, so there are never more goroutines than such rules. It belongs to one Run of a loop.
type asker struct {
	querier Querier
	metrics *Metrics
	logger  *slog.Logger
	now     func() time.Time
	slots   chan struct{}
	work    sync.WaitGroup

	mu    sync.Mutex
	rules map[string]*asked
}

// asked is what is known of one rule's questions.
type asked struct {
	of      string
	at      time.Time // of the newest question that was put
	skipped time.Time // of the newest one that was due while another was open
	open    bool
	answer  *Answer // that no committed tick carries
	failing bool
}

func newAsker(q Querier, m *Metrics, logger *slog.Logger, now func() time.Time) *asker {
	return &asker{querier: q, metrics: m, logger: logger, now: now, slots: make(chan struct{}, asking), rules: map[string]*asked{}}
}

// ask begins to answer each question that has not been put yet. It does not wait.
func (a *asker) ask(ctx context.Context, all []Question) {
	if a.querier == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range all {
		x := a.rules[q.Rule]
		if x == nil {
			x = &asked{}
			a.rules[q.Rule] = x
		}
		switch {
		case x.of == q.Of && !q.At.After(x.at):
			continue
		case x.open:
			if q.At.After(x.skipped) {
				x.skipped = q.At
				a.metrics.queriesSkipped.Inc()
			}
			continue
		}
		x.of, x.at, x.open = q.Of, q.At, true
		a.work.Go(func() { a.answer(ctx, q, x) })
	}
}

func (a *asker) answer(ctx context.Context, q Question, x *asked) {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return
	}
	began := a.now()
	asking, cancel := context.WithTimeout(ctx, q.Timeout)
	rows, err := a.querier.Query(asking, q)
	if asking.Err() != nil && ctx.Err() == nil {
		err = &QueryError{QueryTimeout, errTook(q.Timeout)}
	}
	cancel()
	if ctx.Err() != nil {
		return // whoever leads next asks again
	}
	answer, outcome := q.Answered(rows, err)
	a.metrics.queries.WithLabelValues(outcome).Inc()
	a.metrics.queryDuration.Observe(a.now().Sub(began).Seconds())
	a.mu.Lock()
	defer a.mu.Unlock()
	if failing := answer.Error != ""; failing != x.failing {
		x.failing = failing
		if failing {
			a.logger.Warn("the query of a rule fails; what it found is unknown", "rule", q.Rule, "at", q.At, "reason", outcome, "err", err)
		} else {
			a.logger.Info("the query of a rule is answered again", "rule", q.Rule, "at", q.At)
		}
	}
	x.open, x.answer = false, &answer
}

type errTook time.Duration

func (e errTook) Error() string { return "no answer within " + time.Duration(e).String() }

// pending are the answers that no tick carries yet, in order.
func (a *asker) pending() (out []Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.rules {
		if x.answer != nil {
			out = append(out, *x.answer)
		}
	}
	slices.SortFunc(out, func(a, b Answer) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Rule, b.Rule)) })
	return out[:min(len(out), answersATick)]
}

// done says that a committed tick carries these.
func (a *asker) done(all []Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range all {
		if x := a.rules[all[i].Rule]; x != nil && x.answer != nil && x.answer.Of == all[i].Of && !x.answer.At.After(all[i].At) {
			x.answer = nil
		}
	}
}

// wait returns when nothing runs any more; the context of ask has ended before.
func (a *asker) wait() { a.work.Wait() }
