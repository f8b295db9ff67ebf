package ingesttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Store keeps batches in memory. It forgets tokens after its window, as the real one does.
type Store struct {
	// Window is how long a token is remembered; 0 is for ever.
	Window time.Duration

	mu      sync.Mutex
	tokens  map[string]time.Time
	batches []*ingest.Batch
	letters []Letter
	repeats int
	failing error
}

// NewStore makes an empty one.
func NewStore() *Store { return &Store{tokens: map[string]time.Time{}} }

// Fail makes every call fail, until it is called with nil.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err
}

// Batches are those stored, in the order in which they were; heartbeats too.
func (s *Store) Batches() []*ingest.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// Repeats counts inserts that were stored before.
func (s *Store) Repeats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeats
}

// Letter is one dead letter as it is stored.
type Letter struct {
	Topic       string
	Incarnation uint32
	Partition   int32
	Offset      int64
}

// Letters are those stored, in the order in which they were.
func (s *Store) Letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.letters)
}

// AddLetter stores one without its batch: its process died between the two.
func (s *Store) AddLetter(l Letter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters = append(s.letters, l)
}

func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

func (s *Store) apply(b *ingest.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := string(b.Stream) + "/" + b.Token()
	if at, known := s.tokens[token]; known && (s.Window == 0 || time.Since(at) < s.Window) {
		s.repeats++
		return
	}
	s.tokens[token] = time.Now()
	s.batches = append(s.batches, b)
	known := slices.Clone(s.letters)
	for _, d := range b.DeadLetters {
		if l := (Letter{b.Range.Topic, b.Range.Incarnation, b.Range.Partition, d.Offset}); !b.Again || !slices.Contains(known, l) {
			s.letters = append(s.letters, l)
		}
	}
}

// Client is the store as a process sees it.
func (s *Store) Client(p *Process) ingest.Store { return &storeClient{s, p} }

type storeClient struct {
	s *Store
	p *Process
}

var _ ingest.Store = (*storeClient)(nil)

var errInsert = errors.New("the connection broke")

func (c *storeClient) Insert(ctx context.Context, b *ingest.Batch) error {
	if err := c.p.step(); err != nil {
		return err
	}
	if err := c.s.failure(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b = own(b)
	switch which, late := c.p.fate(func(c Chaos) []float64 { return []float64{c.InsertLate, c.InsertFail / 2, c.InsertFail / 2} }); which {
	case 0:
		time.AfterFunc(late, func() { c.s.apply(b) })
		sleep(ctx, time.Second)
		return errInsert
	case 1:
		c.s.apply(b)
		return errInsert
	case 2:
		return errInsert
	}
	c.s.apply(b)
	return c.p.step()
}

// own copies what the loop uses again after an insert.
func own(b *ingest.Batch) *ingest.Batch {
	c := *b
	c.Cells = make([]ingest.Cell, len(b.Cells))
	for i := range c.Cells {
		c.Cells[i] = ingest.NewCell(b.Cells[i].Signal())
	}
	return &c
}

func (c *storeClient) Stored(_ context.Context, stream signal.Stream, r ingest.Range) (bool, error) {
	if err := c.p.step(); err != nil {
		return false, err
	}
	if err := c.s.failure(); err != nil {
		return false, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return slices.ContainsFunc(c.s.batches, func(b *ingest.Batch) bool {
		return b.Stream == stream && b.Range == r && !b.Marker.Heartbeat
	}), nil
}

func (c *storeClient) Letters(_ context.Context, _ signal.Stream, r ingest.Range) (out []int64, err error) {
	if err := c.p.step(); err != nil {
		return nil, err
	}
	if err := c.s.failure(); err != nil {
		return nil, err
	}
	for _, l := range c.s.Letters() {
		if l.Topic == r.Topic && l.Incarnation == r.Incarnation && l.Partition == r.Partition && l.Offset >= r.Start && l.Offset < r.End {
			out = append(out, l.Offset)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (c *storeClient) Position(_ context.Context, stream signal.Stream, topic string, partition int32) (ingest.Position, error) {
	if err := c.p.step(); err != nil {
		return ingest.Position{}, err
	}
	if err := c.s.failure(); err != nil {
		return ingest.Position{}, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	var pos ingest.Position
	for _, b := range c.s.batches {
		r := b.Range
		if b.Stream != stream || r.Topic != topic || r.Partition != partition || pos.Found && r.Incarnation < pos.Incarnation {
			continue
		}
		if !pos.Found || r.Incarnation > pos.Incarnation {
			pos = ingest.Position{Found: true, Incarnation: r.Incarnation, End: -1}
		}
		if r.End > pos.End {
			pos.End, pos.RecordTime = r.End, b.Marker.RecordTime
		}
		if b.Marker.Watermark.After(pos.Watermark) {
			pos.Watermark = b.Marker.Watermark
		}
	}
	return pos, nil
}
