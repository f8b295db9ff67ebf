package demo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// operated brings up a quiet installation that judges by rules of its own, which an operator can edit in the file that is returned. The
// rest of its configuration begins with more.
func operated(t *testing.T, rules, more string) (d *Demo, file string) {
	t.Helper()
	d = up(t, Options{Scenario: load(t, "quiet"), BeforeDaemon: func(d *Demo) error {
		file = filepath.Join(filepath.Dir(d.configFile()), "rules", "operated.yaml")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		config, err := os.ReadFile(d.configFile())
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
			return err
		}
		return os.WriteFile(d.configFile(), bytes.Replace(config, []byte("files: {"), []byte(more+"files: {rules: rules, "), 1), 0o600)
	}})
	return d, file
}

func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// minutes puts requests of a service onto the topic of native ones, of which the failed share is given in tenths.
func (d *Demo) minutes(t *testing.T, from time.Time, n int, tenths uint64) time.Time {
	t.Helper()
	return d.lines(t, from, n, time.Time{}, minute{service: "issues", good: 40 - 4*tenths, bad: 4 * tenths})
}

// minute says what one minute of a service is like, in requests of each 10 seconds.
type minute struct {
	service             string
	good, bad, rejected uint64
	latency             time.Duration
}

// lines makes records of minutes that begin at from and come at a record time of their own, or in time.
func (d *Demo) lines(t *testing.T, from time.Time, n int, arrival time.Time, what ...minute) time.Time {
	t.Helper()
	to := from.Add(time.Duration(n) * time.Minute)
	var records []kafka.Record
	for at := from; at.Before(to); at = at.Add(10 * time.Second) {
		for _, m := range what {
			for _, c := range []struct {
				o signal.Outcome
				n uint64
			}{{signal.Success, m.good}, {signal.Failure, m.bad}, {signal.Rejected, m.rejected}} {
				if c.n == 0 {
					continue
				}
				r := signal.Request{
					Time: at, Path: signal.Path{Service: m.service, Operation: "create", Access: signal.Write}, Outcome: c.o, Count: c.n,
					Latency: max(m.latency, 20*time.Millisecond), Account: fmt.Sprintf("account-%d", at.Unix()/10), Error: "<a> & b",
				}
				value, err := signaljson.Append(nil, &r)
				if err != nil {
					t.Fatal(err)
				}
				stamp := at
				if !arrival.IsZero() {
					stamp = arrival
				}
				records = append(records, kafka.Record{Time: stamp, Value: value})
			}
		}
	}
	if err := d.kafka.NewProducer().Produce(t.Context(), "tocsin.requests", 0, records...); err != nil {
		t.Fatal(err)
	}
	return to
}
