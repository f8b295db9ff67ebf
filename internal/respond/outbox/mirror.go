package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/respond"
)

// Topic is a compacted Kafka topic. Produce returns when the record is acknowledged by all in-sync replicas; a nil value
// is a tombstone. LoadAll gives the newest value of each key. Both must honour ctx. The caller owns it.
type Topic interface {
	Produce(ctx context.Context, key string, value []byte) error
	LoadAll(ctx context.Context) (map[string][]byte, error)
}

const (
	produceTimeout = 2 * time.Second
	loadTimeout    = 20 * time.Second
	resendEvery    = 3 * time.Second
)

// Mirror writes to the local file first and to the topic second. While the topic cannot be reached, the file alone
// answers, and what the topic missed is sent later: Kafka being down must not keep a page from going out. On start
// the later version of each key counts, wherever it is.
type Mirror struct {
	local respond.Store
	topic Topic
	newer func(a, b []byte) bool
	log   *slog.Logger
	// Reachable hears whether the topic takes writes; may be nil. Set it before use.
	Reachable func(healthy bool, detail string)

	producing sync.Mutex // keeps writes of one key to the topic in order

	mu     sync.Mutex
	missed map[string][]byte // newest values that the topic does not have; as many as there are records at most
	down   bool
	cancel context.CancelFunc
	done   chan struct{}
}

var _ respond.Store = (*Mirror)(nil)

// NewMirror starts the goroutine that catches the topic up; Close ends it and closes local. newer tells whether a is a
// later version than b, as respond.Newer does.
func NewMirror(local respond.Store, topic Topic, newer func(a, b []byte) bool, logger *slog.Logger) *Mirror {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Mirror{local: local, topic: topic, newer: newer, log: logger, missed: map[string][]byte{}, cancel: cancel, done: make(chan struct{})}
	go m.run(ctx)
	return m
}

// Load merges both copies. A topic that cannot be read is no error: the file has all that this machine decided. It is
// for the one who is about to write; nobody may write meanwhile.
func (m *Mirror) Load(ctx context.Context) (map[string][]byte, error) {
	out, err := m.local.Load(ctx)
	if err != nil {
		return nil, err
	}
	if out == nil {
		out = map[string][]byte{}
	}
	loadCtx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	remote, err := m.topic.LoadAll(loadCtx)
	if err != nil {
		m.outcome(fmt.Errorf("read the outbox topic: %w", err))
		for key, mine := range out {
			m.miss(key, mine)
		}
		return out, nil
	}
	for _, key := range slices.Sorted(maps.Keys(remote)) {
		if mine, ok := out[key]; !ok || m.newer(remote[key], mine) {
			out[key] = remote[key]
			if err := m.local.Put(ctx, key, remote[key]); err != nil {
				return nil, err
			}
		}
	}
	for key, mine := range out {
		if theirs, ok := remote[key]; !ok || m.newer(mine, theirs) {
			m.miss(key, mine)
		}
	}
	return out, nil
}

// Peek gives what Load would, for those who only look: it changes neither copy, and a topic that cannot be read says
// nothing about whether it takes writes. Load compares two copies that were read one after the other, which is only
// right while nobody writes: between the two a newer value may have gone to both, and it would be put back.
func (m *Mirror) Peek(ctx context.Context) (map[string][]byte, error) {
	out, err := m.local.Load(ctx)
	if err != nil {
		return nil, err
	}
	if out == nil {
		out = map[string][]byte{}
	}
	remote, err := m.topic.LoadAll(ctx)
	if err != nil {
		return out, nil //nolint:nilerr // the file has all that this machine decided
	}
	for key, theirs := range remote {
		if mine, ok := out[key]; !ok || m.newer(theirs, mine) {
			out[key] = theirs
		}
	}
	return out, nil
}

// Put returns once the value is in the local file. It also waits for the topic, unless that is known to be down.
func (m *Mirror) Put(ctx context.Context, key string, value []byte) error {
	localErr := m.local.Put(ctx, key, value)
	m.mu.Lock()
	skip := m.down && localErr == nil
	m.mu.Unlock()
	if skip {
		m.miss(key, value)
		return nil
	}
	m.producing.Lock()
	defer m.producing.Unlock()
	produceCtx, cancel := context.WithTimeout(ctx, produceTimeout)
	defer cancel()
	err := m.topic.Produce(produceCtx, key, value)
	m.outcome(err)
	switch {
	case err == nil && localErr == nil:
		m.mu.Lock()
		delete(m.missed, key)
		m.mu.Unlock()
		return nil
	case err == nil:
		return nil // the disk failed, the topic has it: safe, but for the next restart without Kafka
	}
	m.miss(key, value)
	if localErr != nil {
		return errors.Join(localErr, fmt.Errorf("write the outbox topic: %w", err))
	}
	return nil
}

func (m *Mirror) miss(key string, value []byte) {
	m.mu.Lock()
	m.missed[key] = value
	m.mu.Unlock()
}

func (m *Mirror) outcome(err error) {
	m.mu.Lock()
	changed := m.down != (err != nil)
	m.down = err != nil
	m.mu.Unlock()
	if changed && err != nil {
		m.log.Warn("the outbox topic cannot be reached, the local file serves alone", "err", err)
	} else if changed {
		m.log.Info("the outbox topic can be reached again")
	}
	if m.Reachable != nil {
		detail := ""
		if err != nil {
			detail = err.Error()
		}
		m.Reachable(err == nil, detail)
	}
}

func (m *Mirror) run(ctx context.Context) {
	defer close(m.done)
	tick := time.NewTicker(resendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			m.catchUp(ctx)
		}
	}
}

// catchUp sends what the topic missed, newest value only, and stops at the first failure.
func (m *Mirror) catchUp(ctx context.Context) {
	m.mu.Lock()
	keys := slices.Sorted(maps.Keys(m.missed))
	m.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	for _, key := range keys {
		if err := m.resend(ctx, key); err != nil {
			if ctx.Err() == nil {
				m.outcome(err)
			}
			return
		}
	}
	m.outcome(nil)
}

func (m *Mirror) resend(ctx context.Context, key string) error {
	m.producing.Lock()
	defer m.producing.Unlock()
	m.mu.Lock()
	value, wanted := m.missed[key]
	delete(m.missed, key) // before sending: a Put meanwhile, which does not wait for us, marks it again
	m.mu.Unlock()
	if !wanted {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, produceTimeout)
	defer cancel()
	err := m.topic.Produce(ctx, key, value)
	if err != nil {
		m.mu.Lock()
		if _, again := m.missed[key]; !again {
			m.missed[key] = value
		}
		m.mu.Unlock()
	}
	return err
}

// Close stops catching up and closes the local store.
func (m *Mirror) Close() error {
	m.cancel()
	<-m.done
	return m.local.Close()
}
