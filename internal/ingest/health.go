package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Health is the loop's state at one moment, for readiness, the self-page and people. Times are of the wall clock.
type Health struct {
	// BlockedSince is when the partition that has been blocked longest stopped, or since when the group has assigned
	// nothing; zero if all is well. What is blocked does not fetch: nothing is lost, but Tocsin is blind to it.
	BlockedSince time.Time         `json:"blocked_since"`
	LastError    string            `json:"last_error,omitempty"`
	Generations  uint64            `json:"generations"` // since the start; 0 means that the group was not joined yet
	Partitions   []PartitionHealth `json:"partitions"`  // assigned ones, by topic and number
	Notices      []Notice          `json:"notices,omitempty"`
}

// PartitionHealth is the state of one assigned partition.
type PartitionHealth struct {
	Topic        string        `json:"topic"`
	Partition    int32         `json:"partition"`
	Stream       signal.Stream `json:"stream"`
	Incarnation  uint32        `json:"incarnation"`
	Position     int64         `json:"position"` // first offset not stored
	Lag          int64         `json:"lag"`      // records not stored, as far as known
	CaughtUp     bool          `json:"caught_up"`
	Watermark    time.Time     `json:"watermark"`
	LastStored   time.Time     `json:"last_stored"` // when a batch or heartbeat was stored, zero if not yet
	BlockedSince time.Time     `json:"blocked_since"`
	LastError    string        `json:"last_error,omitempty"`
	LateServices []string      `json:"late_services,omitempty"` // whose events usually come later than anybody waits
}

// NoticeKind says what a notice is about; also the label of a metric.
type NoticeKind string

// What the loop tells about itself besides its log.
const (
	NoticeGap    NoticeKind = "gap"    // records were deleted before they were read
	NoticeAnew   NoticeKind = "anew"   // the topic was made anew
	NoticeMoved  NoticeKind = "moved"  // lock and ledger differed, the ledger was followed
	NoticeLate   NoticeKind = "late"   // a service's events usually come later than anybody waits
	NoticeValues NoticeKind = "values" // an attribute has more values than are counted by name
)

// NoticeKinds is the closed set.
var NoticeKinds = []NoticeKind{NoticeGap, NoticeAnew, NoticeMoved, NoticeLate, NoticeValues}

// Notice is something that somebody should know of, a self-finding.
type Notice struct {
	Kind      NoticeKind `json:"kind"`
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Text      string     `json:"text"`
	At        time.Time  `json:"at"`
}

const maxNotices = 100

// rebalanceMax is how long the group may take to share its partitions out before that counts as being blocked.
const rebalanceMax = 30 * time.Second

// Health takes a snapshot.
func (l *Loop) Health() Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := Health{Generations: l.generations, Notices: slices.Clone(l.notices), LastError: l.lastError, BlockedSince: l.blockedSince}
	if !l.withoutSince.IsZero() && l.now().Sub(l.withoutSince) > rebalanceMax && (h.BlockedSince.IsZero() || l.withoutSince.Before(h.BlockedSince)) {
		h.BlockedSince, h.LastError = l.withoutSince, "the consumer group assigns nothing: is Kafka reachable, and do the topics exist?"
	}
	for p := range l.partitions {
		h.Partitions = append(h.Partitions, p.health)
		if b := p.health.BlockedSince; !b.IsZero() && (h.BlockedSince.IsZero() || b.Before(h.BlockedSince)) {
			h.BlockedSince, h.LastError = b, p.health.LastError
		}
	}
	slices.SortFunc(h.Partitions, func(a, b PartitionHealth) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return h
}

func (l *Loop) notice(tp TopicPartition, kind NoticeKind, text string) {
	n := Notice{Kind: kind, Topic: tp.Topic, Partition: tp.Partition, Text: text, At: l.now().UTC()}
	l.metrics.notices.WithLabelValues(string(kind)).Inc()
	l.log.Warn(text, "notice", kind, "topic", tp.Topic, "partition", tp.Partition)
	l.mu.Lock()
	l.notices = append(l.notices, n)
	l.notices = l.notices[max(0, len(l.notices)-maxNotices):]
	l.mu.Unlock()
	if l.onNotice != nil {
		l.onNotice(n)
	}
}

// update changes the partition's part of the snapshot.
func (p *partition) update(change func(h *PartitionHealth)) {
	p.loop.mu.Lock()
	defer p.loop.mu.Unlock()
	change(&p.health)
}

// blocked notes a failure that stops the partition. Only the first of a row is logged.
func (p *partition) blocked(doing string, err error) {
	first := false
	p.update(func(h *PartitionHealth) {
		if first = h.BlockedSince.IsZero(); first {
			h.BlockedSince = p.loop.now().UTC()
		}
		h.LastError = err.Error()
	})
	p.loop.metrics.failures.WithLabelValues(doing).Inc()
	if first {
		p.loop.metrics.blocked.Inc()
		p.log.Warn("partition is blocked, trying on", "doing", doing, "err", err)
	}
}

// unblocked ends a row of failures.
func (p *partition) unblocked() {
	var since time.Time
	p.update(func(h *PartitionHealth) {
		since = h.BlockedSince
		h.BlockedSince = time.Time{}
	})
	if !since.IsZero() {
		p.loop.metrics.blocked.Dec()
		p.log.Info("partition goes on", "blocked", p.loop.now().Sub(since).Round(time.Millisecond))
	}
}
