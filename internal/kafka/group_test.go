package kafka_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
)

func TestMembersShareThePartitions(t *testing.T) {
	addr, topic := broker(t, 6)
	a := run(t, newClient(t, addr), "g-"+topic, topic, nil)
	a.owns(t, topic, 6)
	b := run(t, newClient(t, addr), "g-"+topic, topic, nil)
	c := run(t, newClient(t, addr), "g-"+topic, topic, nil)
	var all []int32
	eventually(t, "two partitions each in one generation", func() bool {
		all = all[:0]
		ids := map[int32]bool{}
		for _, r := range []*runner{a, b, c} {
			g := r.owns(t, topic, 2)
			ids[g.ID] = true
			all = append(all, g.Assigned[topic]...)
		}
		return len(ids) == 1
	})
	slices.Sort(all)
	if !slices.Equal(all, []int32{0, 1, 2, 3, 4, 5}) {
		t.Errorf("partitions %v, want each of 0 to 5 once", all)
	}
	c.stop()
	a.owns(t, topic, 3)
	b.owns(t, topic, 3)
}

func TestMorePartitionsThanBeforeAreAssigned(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	a := run(t, c, "g-"+topic, topic, nil)
	a.owns(t, topic, 1)
	must(t, c.EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic, Partitions: 3, Update: true}}))
	a.owns(t, topic, 3)
}

func TestCommitKeepsOffsetAndMetadata(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	if off, meta, err := c.FetchCommitted(t.Context(), "g-"+topic, topic, 0); err != nil || off != -1 || meta != "" {
		t.Errorf("before the first commit: %d %q %v", off, meta, err)
	}
	gen := run(t, c, "g-"+topic, topic, nil).owns(t, topic, 1)
	meta := strings.Repeat("m", kafka.MaxMetadataBytes)
	must(t, c.Commit(t.Context(), gen, topic, 0, 42, meta))
	if off, got, err := c.FetchCommitted(t.Context(), "g-"+topic, topic, 0); err != nil || off != 42 || got != meta {
		t.Errorf("committed 42 with metadata, got %d, %d bytes, %v", off, len(got), err)
	}
	err := c.Commit(t.Context(), gen, topic, 0, 43, meta+"m")
	if !errors.Is(err, kafka.ErrFenced) || kafka.ReasonOf(err) != kafka.ReasonTooLarge {
		t.Errorf("metadata too long: %v", err)
	}
	if gen.Poisoned() {
		t.Error("a commit that was never sent poisoned the generation")
	}
}

// A member that was overtaken by a rebalance must not be able to move the offset.
func TestCommitOfAnOldGenerationIsFenced(t *testing.T) {
	addr, topic := broker(t, 2)
	c := newClient(t, addr)
	a := run(t, c, "g-"+topic, topic, nil)
	old := a.owns(t, topic, 2)
	must(t, c.Commit(t.Context(), old, topic, 0, 10, "old"))
	b := run(t, newClient(t, addr), "g-"+topic, topic, nil)
	a.owns(t, topic, 1)
	now := b.owns(t, topic, 1)
	if err := c.Commit(t.Context(), old, topic, 0, 5, "zombie"); !errors.Is(err, kafka.ErrFenced) || kafka.Retryable(err) {
		t.Errorf("commit of generation %d in generation %d: %v", old.ID, now.ID, err)
	}
	stranger := now
	stranger.MemberID = "stranger"
	if err := c.Commit(t.Context(), stranger, topic, 0, 5, "stranger"); !errors.Is(err, kafka.ErrFenced) {
		t.Errorf("commit of an unknown member: %v", err)
	}
	if off, meta, err := c.FetchCommitted(t.Context(), "g-"+topic, topic, 0); err != nil || off != 10 || meta != "old" {
		t.Errorf("committed %d %q %v, want what was committed in time", off, meta, err)
	}
	if old.Poisoned() || now.Poisoned() {
		t.Error("a fenced commit has a known outcome and must not poison")
	}
}

func TestPoisonedMemberJoinsAnewUnderAnotherID(t *testing.T) {
	addr, topic := broker(t, 2)
	c := newClient(t, addr)
	other := run(t, newClient(t, addr), "g-"+topic, topic, nil) // Makes the poisoned one a follower.
	other.owns(t, topic, 2)
	var poison atomic.Bool
	wake := make(chan struct{})
	r := run(t, c, "g-"+topic, topic, func(ctx context.Context, g kafka.Generation) error {
		if len(g.Assigned[topic]) == 1 && poison.CompareAndSwap(false, true) {
			close(wake)
			return kafka.ErrPoisoned
		}
		<-ctx.Done()
		return nil
	})
	<-wake
	first := r.next(t)
	second := r.next(t)
	if first.MemberID == second.MemberID {
		t.Errorf("the member kept its id %s", first.MemberID)
	}
	if err := c.Commit(t.Context(), first, topic, 0, 5, "delayed"); !errors.Is(err, kafka.ErrFenced) {
		t.Errorf("a commit of the membership that was left: %v", err)
	}
	r.owns(t, topic, 1)
}

// Commits whose answer never comes leave the outcome open. The generation must end by itself and the process come back
// as another member.
func TestCommitWithoutAnswerPoisonsTheGeneration(t *testing.T) {
	addr, topic := broker(t, 1)
	p := startProxy(t, addr)
	c := newClient(t, addr)
	// A client of its own for commits, whose commits reach the broker while the answers do not come back.
	mute := newClient(t, p.addr, func(cfg *kafka.Config) { cfg.CommitTimeout = 200 * time.Millisecond })
	cause := make(chan error, 10)
	r := run(t, c, "g-"+topic, topic, func(ctx context.Context, g kafka.Generation) error {
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil // Even a consumer that does not notice is made to leave.
	})
	first := r.owns(t, topic, 1)
	p.swallow.Store(true)
	err := mute.Commit(t.Context(), first, topic, 0, 7, "")
	if !errors.Is(err, kafka.ErrUnknownOutcome) || errors.Is(err, kafka.ErrFenced) {
		t.Fatalf("commit without an answer: %v", err)
	}
	if err := <-cause; !errors.Is(err, kafka.ErrPoisoned) {
		t.Errorf("the generation ended by %v", err)
	}
	if err := c.Commit(t.Context(), first, topic, 0, 8, ""); !errors.Is(err, kafka.ErrFenced) {
		t.Errorf("another commit of the poisoned generation: %v", err)
	}
	r.next(t)
	second := r.next(t)
	if second.MemberID == first.MemberID {
		t.Error("the poisoned member kept its id")
	}
	if second.Poisoned() {
		t.Error("the new generation is poisoned too")
	}
	must(t, c.Commit(t.Context(), second, topic, 0, 9, ""))
}

// The same while a rebalance ends the generation anyway: kafka-go would join again under the old id.
func TestCommitWithoutAnswerPoisonsAlsoAtARebalance(t *testing.T) {
	addr, topic := broker(t, 2)
	p := startProxy(t, addr)
	p.swallow.Store(true)
	mute := newClient(t, p.addr, func(cfg *kafka.Config) { cfg.CommitTimeout = 100 * time.Millisecond })
	var once sync.Once
	r := run(t, newClient(t, addr), "g-"+topic, topic, func(ctx context.Context, g kafka.Generation) error {
		<-ctx.Done()
		once.Do(func() {
			if err := mute.Commit(context.WithoutCancel(ctx), g, topic, 0, 7, ""); !errors.Is(err, kafka.ErrUnknownOutcome) {
				t.Errorf("commit without an answer: %v", err)
			}
		})
		return nil
	})
	first := r.owns(t, topic, 2)
	run(t, newClient(t, addr), "g-"+topic, topic, nil)
	if second := r.owns(t, topic, 1); second.MemberID == first.MemberID {
		t.Error("the poisoned member kept its id")
	}
}

func TestConsumerThatGivesUpComesBack(t *testing.T) {
	addr, topic := broker(t, 1)
	var n atomic.Int32
	r := run(t, newClient(t, addr), "g-"+topic, topic, func(ctx context.Context, g kafka.Generation) error {
		if n.Add(1) < 3 {
			return errors.New("storage is down")
		}
		<-ctx.Done()
		return nil
	})
	ids := map[string]bool{r.next(t).MemberID: true, r.next(t).MemberID: true, r.next(t).MemberID: true}
	if len(ids) != 3 {
		t.Errorf("%d member ids in 3 memberships", len(ids))
	}
}

func TestGroupWaitsForItsTopic(t *testing.T) {
	addr, topic := broker(t, 1)
	later := topic + "-later"
	c := newClient(t, addr, func(cfg *kafka.Config) { cfg.MetadataTTL = 50 * time.Millisecond })
	r := run(t, c, "g-"+topic, later, nil)
	must(t, newClient(t, addr).EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: later, Partitions: 2}}))
	r.owns(t, later, 2)
}

// An installation that has no tickets yet must not be blind for want of their topic.
func TestTopicsThatExistDoNotWaitForOthers(t *testing.T) {
	addr, topic := broker(t, 2)
	c := newClient(t, addr, func(cfg *kafka.Config) { cfg.MetadataTTL = 50 * time.Millisecond })
	r := runTopics(t, c, "g-"+topic, []string{topic, topic + "-later"}, nil)
	r.owns(t, topic, 2)
	must(t, newClient(t, addr).EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic + "-later", Partitions: 1}}))
	r.owns(t, topic+"-later", 1)
	r.owns(t, topic, 2)
}

// kafka-go cannot be interrupted while it waits for the answer to a join, which may take a rebalance.
func TestRunEndsSoonWhileJoining(t *testing.T) {
	addr, topic := broker(t, 1)
	p := startProxy(t, addr)
	p.hold.Store(true)
	r := run(t, newClient(t, p.addr), "g-"+topic, topic, nil)
	eventually(t, "a join that waits", p.joining.Load)
	began := time.Now()
	r.stop()
	if d := time.Since(began); d > 6*time.Second {
		t.Errorf("stopping took %s", d)
	}
}
