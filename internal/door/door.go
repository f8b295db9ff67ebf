package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/tocsin-project/tocsin/internal/pipeline"
)

// Producer puts records onto topics. The door uses it from many goroutines and does not close it.
type Producer interface {
	// Produce returns nil when every in-sync replica has the record. An error that is ErrTooLarge is for good; after any
	// other the sender is told to try again, though the record may have been stored.
	Produce(ctx context.Context, topic string, value []byte) error
}

// ErrTooLarge is what a producer's error is when the broker takes no record of that size.
var ErrTooLarge = errors.New("the record is too large for its topic")

// Options is what a door is made of.
type Options struct {
	Config    Config
	Pipelines *pipeline.Set
	Producer  Producer
	// Path makes a path of the configuration absolute.
	Path    func(string) string
	Logger  *slog.Logger
	Metrics *Metrics
	Now     func() time.Time
}

// Door serves what senders post.
type Door struct {
	o       Options
	senders map[string]*sender
	slots   chan struct{}
}

// sender is an open pipeline.
type sender struct {
	name, topic string
	limit       int64
	scheme      Scheme
	open        bool
	tokens      []string // files
	secrets     []string // files
}

// New checks that the pipelines exist and that the secrets can be read. It starts nothing.
func New(o Options) (*Door, error) {
	d := &Door{o: o, senders: map[string]*sender{}, slots: make(chan struct{}, max(o.Config.ConcurrentMax, 1))}
	if d.o.Path == nil {
		d.o.Path = filepath.Clean
	}
	if d.o.Now == nil {
		d.o.Now = time.Now
	}
	if d.o.Metrics == nil {
		d.o.Metrics = NewMetrics(nil)
	}
	for _, c := range o.Config.Pipelines {
		s, err := d.sender(c)
		if err != nil {
			return nil, fmt.Errorf("door: pipeline %q: %w", c.Pipeline, err)
		}
		d.senders[c.Pipeline] = s
		for _, outcome := range outcomes {
			d.o.Metrics.requests.WithLabelValues(s.name, outcome)
		}
	}
	return d, nil
}

func (d *Door) sender(c Sender) (*sender, error) {
	for _, p := range d.o.Pipelines.Pipelines {
		if p.Name != c.Pipeline {
			continue
		}
		s := &sender{name: p.Name, topic: p.AllTopics()[0], limit: int64(p.MaxRecord), scheme: c.Signature, open: c.Open}
		for _, f := range c.TokenFiles {
			s.tokens = append(s.tokens, d.o.Path(f))
		}
		for _, f := range c.SecretFiles {
			s.secrets = append(s.secrets, d.o.Path(f))
		}
		for _, files := range [][]string{s.tokens, s.secrets} {
			if _, err := secrets(files); err != nil {
				return nil, err
			}
		}
		return s, nil
	}
	return nil, errors.New("there is no such pipeline")
}

// Register adds the addresses to a server, or none where no pipeline is open.
func (d *Door) Register(mux *http.ServeMux) {
	if len(d.senders) == 0 {
		return
	}
	mux.HandleFunc("POST /ingest/{pipeline}", func(w http.ResponseWriter, r *http.Request) {
		s := d.senders[r.PathValue("pipeline")]
		if s == nil {
			fail(w, http.StatusNotFound, "no pipeline of this name is open: the configuration's door.pipelines lists those that are")
			return
		}
		d.serve(w, r, s, anything, http.StatusAccepted)
	})
	if s := d.senders[d.o.Config.Alerts]; s != nil {
		// Alertmanager answers 200, and some of its clients insist.
		mux.HandleFunc("POST /api/v2/alerts", func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, s, postedAlerts, http.StatusOK) })
	}
}
