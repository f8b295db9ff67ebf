package detect

import (
	"fmt"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// recall is what the evaluator of one rule remembers beyond windows and findings. It is made with the detector, belongs to its
// rule, and is written into snapshots: equal ones must give equal bytes.
type recall interface {
	save() ([]byte, error)
	load(data []byte) error
}

// recalls has an entry for each kind that remembers something.
var recalls = map[string]func(*compiled) recall{
	"gauge":    newWatches,
	"external": newReceived,
	"sql":      newAnswers,
	"backlog":  newBacklogs,
	"retries":  newTries,
	"support":  newEars,
	highImpact: newFuser,
	"absence":  newPresences,
	"failure_rate": func(c *compiled) recall {
		return newHistories(c.Params.(*rule.FailureRate).BurnRates, c.Params.(*rule.FailureRate).Objective)
	},
	"latency": func(c *compiled) recall {
		return newHistories(c.Params.(*rule.Latency).BurnRates, c.Params.(*rule.Latency).Objective)
	},
}

// recollections are the memories of all rules by kind and name.
func (d *Detector) recollections() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, r := range d.rules {
		if r.recall == nil {
			continue
		}
		data, err := r.recall.save()
		if err != nil {
			return nil, fmt.Errorf("encoding what %s remembers: %w", r.Alert, err)
		}
		out[r.Kind+"/"+r.Alert] = data
	}
	return out, nil
}

// recollect puts memories back where their rule still is, of the same kind.
func (d *Detector) recollect(from map[string][]byte) error {
	for _, r := range d.rules {
		data, ok := from[r.Kind+"/"+r.Alert]
		if r.recall == nil || !ok {
			continue
		}
		if err := r.recall.load(data); err != nil {
			return fmt.Errorf("reading what %s remembers: %w", r.Alert, err)
		}
	}
	return nil
}

// forget lets memories of what is gone go, once an hour.
func (d *Detector) forget() {
	for _, r := range d.rules {
		if f, ok := r.recall.(interface{ forget(d *Detector) }); ok {
			f.forget(d)
		}
	}
}

// counter is a memory that every cell of a path concerns.
type counter interface {
	count(s *series, bucket int64, c *signal.Cell)
}
