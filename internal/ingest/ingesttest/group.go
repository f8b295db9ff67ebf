package ingesttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// Times of the group. A frozen process loses its membership after the session, and learns of it after waking up.
const (
	sessionTimeout = 10 * time.Second
	commitTimeout  = 2 * time.Second
	poll           = 50 * time.Millisecond
)

type group struct {
	generation int
	nextMember int
	preparing  bool // members are joining
	members    map[int]*member
}

type member struct {
	id       int
	process  *Process
	lastBeat time.Time
	joined   bool // waits for the generation
	assigned []ingest.TopicPartition
	gen      int
}

// Group is the consumer group as a process sees it. Chaos does not touch its own steps, only commits.
func (k *Kafka) Group(p *Process) ingest.Group { return &groupClient{k, p} }

type groupClient struct {
	k *Kafka
	p *Process
}

var _ ingest.Group = (*groupClient)(nil)

func (g *groupClient) Run(ctx context.Context, fn func(context.Context, ingest.Generation) error) error {
	m := g.k.newMember(g.p)
	for ctx.Err() == nil {
		if !g.k.join(ctx, m) {
			break
		}
		gctx, cancel := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() { // heartbeats
			defer close(watched)
			defer cancel()
			for gctx.Err() == nil && g.k.alive(m) {
				sleep(gctx, poll)
			}
		}()
		err := fn(gctx, &generation{k: g.k, p: g.p, m: m, id: m.gen, assigned: m.assigned})
		early := gctx.Err() == nil
		cancel()
		<-watched
		if early || errors.Is(err, ingest.ErrPoisoned) {
			g.k.leave(m)
			m = g.k.newMember(g.p)
		}
	}
	g.k.leave(m)
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (k *Kafka) newMember(p *Process) *member {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.group.nextMember++
	return &member{id: k.group.nextMember, process: p}
}

// alive is a heartbeat: false where the generation is over for the member. A process that sleeps does not beat.
func (k *Kafka) alive(m *member) bool {
	if m.process.asleep() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire()
	if k.group.members[m.id] != m {
		return false
	}
	m.lastBeat = time.Now()
	return !k.group.preparing && m.gen == k.group.generation
}

// expire drops members that have not been heard of for a session. The caller holds mu.
func (k *Kafka) expire() {
	for id, m := range k.group.members {
		if time.Since(m.lastBeat) > sessionTimeout {
			delete(k.group.members, id)
			k.group.preparing = true
		}
	}
}

// join waits for the next generation.
func (k *Kafka) join(ctx context.Context, m *member) bool {
	k.mu.Lock()
	k.group.members[m.id] = m
	k.group.preparing = true
	m.joined, m.lastBeat = true, time.Now()
	k.mu.Unlock()
	for ctx.Err() == nil {
		if !m.process.asleep() {
			k.mu.Lock()
			if k.group.members[m.id] != m { // expired while asleep
				k.group.members[m.id] = m
				k.group.preparing = true
			}
			m.joined = m.joined || k.group.preparing // the next one came before this one was taken up
			m.lastBeat = time.Now()
			k.expire()
			if k.group.preparing && k.allJoined() {
				k.assign()
			}
			ready := !k.group.preparing && !m.joined
			k.mu.Unlock()
			if ready {
				return true
			}
		}
		sleep(ctx, poll)
	}
	return false
}

func (k *Kafka) allJoined() bool {
	for _, m := range k.group.members {
		if !m.joined {
			return false
		}
	}
	return true
}

func (k *Kafka) assign() {
	k.group.generation++
	k.group.preparing = false
	ids := slices.Sorted(maps.Keys(k.group.members))
	for _, id := range ids {
		m := k.group.members[id]
		m.assigned, m.joined, m.gen = nil, false, k.group.generation
	}
	tps := slices.SortedFunc(maps.Keys(k.logs), func(a, b ingest.TopicPartition) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	for i, tp := range tps {
		// Turned with the generation, so that partitions change hands.
		m := k.group.members[ids[(i+k.group.generation)%len(ids)]]
		m.assigned = append(m.assigned, tp)
	}
}

func (k *Kafka) leave(m *member) {
	if m.process.Dead() {
		return // the dead say nothing, their session has to end
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.group.members[m.id] == m {
		delete(k.group.members, m.id)
		k.group.preparing = true
	}
}

type generation struct {
	k        *Kafka
	p        *Process
	m        *member
	id       int
	assigned []ingest.TopicPartition
}

var _ ingest.Generation = (*generation)(nil)

func (g *generation) Assigned() []ingest.TopicPartition { return g.assigned }

func (g *generation) Committed(_ context.Context, tp ingest.TopicPartition) (int64, string, error) {
	if err := g.p.step(); err != nil {
		return 0, "", err
	}
	offset, metadata := g.k.Commit(tp.Topic, tp.Partition)
	return offset, metadata, nil
}

func (g *generation) Commit(ctx context.Context, tp ingest.TopicPartition, offset int64, metadata string) error {
	if err := g.p.step(); err != nil {
		return fmt.Errorf("%w: %w", ingest.ErrUnknownOutcome, err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("not sent: %w", ingest.ErrFenced)
	}
	apply := func() error { return g.k.apply(g, tp, commit{offset, metadata}) }
	switch which, late := g.p.fate(func(c Chaos) []float64 { return []float64{c.CommitLate, c.CommitLost / 2, c.CommitLost / 2} }); which {
	case 0:
		time.AfterFunc(late, func() { _ = apply() }) // fenced or not, nobody hears of it
		time.Sleep(commitTimeout)
		return ingest.ErrUnknownOutcome
	case 1:
		_ = apply() // the answer is lost
		time.Sleep(commitTimeout)
		return ingest.ErrUnknownOutcome
	case 2:
		time.Sleep(commitTimeout)
		return ingest.ErrUnknownOutcome
	}
	err := apply()
	if dead := g.p.step(); dead != nil {
		return fmt.Errorf("%w: %w", ingest.ErrUnknownOutcome, dead)
	}
	return err
}

// apply is the coordinator: it takes a commit of a member of the current generation.
func (k *Kafka) apply(g *generation, tp ingest.TopicPartition, c commit) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire()
	if k.group.members[g.m.id] != g.m || g.id != k.group.generation {
		return ingest.ErrFenced
	}
	k.commits[tp] = c
	return nil
}
