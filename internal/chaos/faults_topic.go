package chaos

import (
	"context"
	"errors"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const group = "tocsin"

// away ends all members, in order or not, and keeps them away while do runs. ClickHouse does not sleep then, because what
// is on its way to it must arrive within the time for which a partition rests whose lock was lost.
func (c *campaign) away(ctx context.Context, f fault, do func() error) error {
	c.engMu.Lock()
	defer c.engMu.Unlock()
	c.starting.Lock()
	defer func() {
		c.starting.Unlock()
		for _, m := range c.base() {
			c.revive(m)
		}
	}()
	inOrder := f.r.IntN(2) == 0
	for _, m := range c.members {
		if m.running() && inOrder {
			m.end()
		} else {
			m.kill()
		}
	}
	// Of those that were killed, the session must end before the group is empty.
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := do()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		pause(ctx, retryEvery)
	}
}

// loseOffsets deletes the group with all that it committed: what losing the offsets topic looks like.
func (c *campaign) loseOffsets(ctx context.Context, f fault) (string, error) {
	const name = "committed offsets lost"
	err := c.away(ctx, f, func() error {
		res, err := c.producer.client.DeleteGroups(ctx, &kafkago.DeleteGroupsRequest{GroupIDs: []string{group}})
		if err != nil {
			return err
		}
		if err := res.Errors[group]; err != nil && !errors.Is(err, kafkago.GroupIdNotFound) {
			return err
		}
		return nil
	})
	return name, c.outcome(ctx, name, err)
}

// outcome tells what the campaign could not do.
func (c *campaign) outcome(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		c.logger.Warn("could not inject", "fault", name, "err", err)
	}
	return errNotReached
}

// moveOffsets sets committed offsets by hand, as a tool does that does not know of reservations.
func (c *campaign) moveOffsets(ctx context.Context, f fault) (string, error) {
	how := f.one("back", "to the beginning", "ahead", "back, with another's metadata")
	name := "committed offsets set " + how
	byPartition := map[string][]kafkago.OffsetCommit{}
	stored, err := c.stored(ctx)
	if err != nil {
		return name, errNotReached
	}
	for _, stream := range streams {
		ids := c.parts(c.producer.last(stream))
		for p, end := range c.producer.ends(stream) {
			if stored[ids[p]] == 0 {
				continue // of a partition that was never read, what people say is where it begins
			}
			o := kafkago.OffsetCommit{Partition: p}
			switch how {
			case "ahead":
				o.Offset = end + f.r.Int64N(1000)
			case "to the beginning":
			default:
				o.Offset = f.r.Int64N(end + 1)
				if how != "back" {
					o.Metadata = f.one("set by hand", `{"end":0,"incarnation":7}`, "{}")
				}
			}
			byPartition[stream] = append(byPartition[stream], o)
		}
	}
	err = c.away(ctx, f, func() error {
		res, err := c.producer.client.OffsetCommit(ctx, &kafkago.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: byPartition})
		if err != nil {
			return err
		}
		for _, ps := range res.Topics {
			for _, p := range ps {
				err = errors.Join(err, p.Error)
			}
		}
		return err
	})
	return name, c.outcome(ctx, name, err)
}

// ends are how many records each partition of a stream's topic holds.
func (p *producer) ends(stream string) (out []int64) {
	l := p.last(stream)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range l.entries {
		out = append(out, int64(len(e)))
	}
	return out
}

// remakeTopic deletes a topic and makes it anew, with as many partitions or others.
func (c *campaign) remakeTopic(ctx context.Context, f fault) (string, error) {
	stream := f.one(streams...)
	name := "topic " + stream + " made anew"
	p := c.producer
	p.locks[stream].Lock()
	defer p.locks[stream].Unlock()
	l := p.last(stream)
	for i := range l.entries {
		if len(l.entries[i]) == 0 {
			return name, errNotReached
		}
		if err := p.await(ctx, l, i); err != nil {
			return name, err
		}
	}
	// A life of which nothing is stored leaves no trace, so that nobody could count lives.
	if !c.begun(ctx, l) {
		return name, errNotReached
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		res, err := p.client.DeleteTopics(ctx, &kafkago.DeleteTopicsRequest{Topics: []string{stream}})
		if err == nil {
			err = res.Errors[stream]
		}
		if err == nil || errors.Is(err, kafkago.UnknownTopicOrPartition) {
			break
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			c.trouble("delete topic %s: %v", stream, err)
			return name, errNotReached
		}
		pause(ctx, retryEvery)
	}
	pause(ctx, f.between(0, 3*time.Second))
	partitions := max(1, len(l.entries)-1+f.r.IntN(3))
	if err := c.makeTopic(context.WithoutCancel(ctx), stream, partitions); err != nil {
		c.trouble("%v", err)
	}
	return name, nil
}

const partitionsMax = 8

// addPartition adds one or two.
func (c *campaign) addPartition(ctx context.Context, f fault) (string, error) {
	stream := f.one(streams...)
	name := "partitions added to " + stream
	p := c.producer
	p.locks[stream].Lock()
	defer p.locks[stream].Unlock()
	n := len(p.last(stream).entries) + 1 + f.r.IntN(2)
	if n > partitionsMax {
		return name, errNotReached
	}
	for ctx.Err() == nil {
		res, err := p.client.CreatePartitions(ctx, &kafkago.CreatePartitionsRequest{Topics: []kafkago.TopicPartitionsConfig{{Name: stream, Count: int32(n)}}})
		if err == nil {
			err = res.Errors[stream]
		}
		if err == nil || errors.Is(err, kafkago.InvalidPartitionNumber) { // an answer that was lost
			break
		}
		pause(ctx, retryEvery)
	}
	for ctx.Err() == nil {
		bounds, err := p.reader.ListOffsets(ctx, stream, seq(n)...)
		if err == nil && len(bounds) == n {
			p.grow(stream, n)
			return name, nil
		}
		pause(ctx, retryEvery)
	}
	p.grow(stream, n)
	return name, nil
}

func seq(n int) (out []int32) {
	for i := range n {
		out = append(out, int32(i))
	}
	return out
}

// unreadMax is how many records of a topic may be deleted before they were read: some, so that members are in the middle of
// them, but not the better part of a campaign.
const unreadMax = 150

// begun waits until something of every partition of a topic's life is stored, and most of it.
func (c *campaign) begun(ctx context.Context, l *life) bool {
	ids, ends := c.parts(l), c.producer.ends(l.stream)
	deadline := time.Now().Add(12 * time.Second)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		stored, err := c.stored(ctx)
		unread := int64(0)
		for i, id := range ids {
			if unread += ends[i] - stored[id]; stored[id] == 0 {
				unread += unreadMax
			}
		}
		if err == nil && unread < unreadMax {
			return true
		}
		pause(ctx, retryEvery)
	}
	return false
}
