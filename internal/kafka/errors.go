package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

var (
	// ErrOffsetOutOfRange is what an OffsetOutOfRangeError is.
	ErrOffsetOutOfRange = errors.New("offset is out of range")
	// ErrFenced: the commit was not applied and never will be. Stop, and insert nothing for it.
	ErrFenced = errors.New("commit was not applied")
	// ErrUnknownOutcome: the commit may have been applied, or may still be. The generation is poisoned.
	ErrUnknownOutcome = errors.New("outcome of commit is unknown")
	// ErrPoisoned makes a member leave its group and join anew under another member id, when the function given to
	// Group.Run returns it. It is also the cause with which a poisoned generation's context ends.
	ErrPoisoned = errors.New("group membership is poisoned")

	errCorrupt     = errors.New("corrupt record batch")
	errUnsupported = errors.New("unsupported by this client")
	errTooLarge    = errors.New("too large")
)

// Reason classifies an error; it is also the label of the metrics.
type Reason string

// The closed set of reasons.
const (
	ReasonAuthentication Reason = "authentication"
	ReasonAuthorization  Reason = "authorization"
	ReasonBroker         Reason = "broker"      // The broker is in trouble for a while.
	ReasonCanceled       Reason = "canceled"    // The caller gave up.
	ReasonConnection     Reason = "connection"  // Could not connect, or the connection broke.
	ReasonCoordinator    Reason = "coordinator" // The group's coordinator moved or is loading.
	ReasonCorrupt        Reason = "corrupt"
	ReasonFenced         Reason = "fenced"
	ReasonLeader         Reason = "leader" // The partition has no leader or another one.
	ReasonOutOfRange     Reason = "out_of_range"
	ReasonRejected       Reason = "rejected" // The broker refused for good for a reason without a name here.
	ReasonThrottled      Reason = "throttled"
	ReasonTimeout        Reason = "timeout"
	ReasonTooLarge       Reason = "too_large"
	ReasonUnknownTopic   Reason = "unknown_topic"
	ReasonUnsupported    Reason = "unsupported"
)

// Reasons lists the set, for metrics and tests.
var Reasons = []Reason{ReasonAuthentication, ReasonAuthorization, ReasonBroker, ReasonCanceled, ReasonConnection,
	ReasonCoordinator, ReasonCorrupt, ReasonFenced, ReasonLeader, ReasonOutOfRange, ReasonRejected, ReasonThrottled,
	ReasonTimeout, ReasonTooLarge, ReasonUnknownTopic, ReasonUnsupported}

// Error is what every operation of this package fails with.
type Error struct {
	Op        string // fetch, list_offsets, commit, …: what was tried; a closed set too.
	Object    string // The topic, group or key it was tried on.
	Partition int32  // Below 0 if it is not about one.
	Reason    Reason
	Retry     bool // Trying again unchanged, after a pause, can succeed.
	Err       error
}

func (e *Error) Error() string {
	if e.Partition >= 0 {
		return fmt.Sprintf("kafka: %s %s/%d: %v", e.Op, e.Object, e.Partition, e.Err)
	}
	return fmt.Sprintf("kafka: %s %s: %v", e.Op, e.Object, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// OffsetOutOfRangeError says where the log begins and ends when a fetch asked for what it does not hold. Start and End are
// -1 when they could not be looked up.
type OffsetOutOfRangeError struct {
	Offset, Start, End int64
}

func (e *OffsetOutOfRangeError) Error() string {
	return fmt.Sprintf("offset %d is out of range: the log holds [%d, %d)", e.Offset, e.Start, e.End)
}

// Is makes errors.Is(err, ErrOffsetOutOfRange) true.
func (e *OffsetOutOfRangeError) Is(target error) bool { return target == ErrOffsetOutOfRange }

// Retryable tells whether trying again unchanged, after a pause, can succeed.
func Retryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Retry
}

// ReasonOf is the reason of an error of this package.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	r, _ := classify(err)
	return r
}

// codes are the broker's answers that need a name of their own; others go by kafka-go's notion of temporary.
var codes = map[kafka.Error]struct {
	reason Reason
	retry  bool
}{
	kafka.OffsetOutOfRange:                   {ReasonOutOfRange, false},
	kafka.InvalidMessage:                     {ReasonCorrupt, true},
	kafka.UnknownTopicOrPartition:            {ReasonUnknownTopic, true},
	kafka.UnknownTopicID:                     {ReasonUnknownTopic, true},
	kafka.LeaderNotAvailable:                 {ReasonLeader, true},
	kafka.NotLeaderForPartition:              {ReasonLeader, true},
	kafka.FencedLeaderEpoch:                  {ReasonLeader, true},
	kafka.UnknownLeaderEpoch:                 {ReasonLeader, true},
	kafka.BrokerNotAvailable:                 {ReasonConnection, true}, // kafka-go's own word for a broker that it does not know
	kafka.RequestTimedOut:                    {ReasonTimeout, true},
	kafka.MessageSizeTooLarge:                {ReasonTooLarge, false},
	kafka.RecordListTooLarge:                 {ReasonTooLarge, false},
	kafka.OffsetMetadataTooLarge:             {ReasonTooLarge, false},
	kafka.GroupLoadInProgress:                {ReasonCoordinator, true},
	kafka.GroupCoordinatorNotAvailable:       {ReasonCoordinator, true},
	kafka.NotCoordinatorForGroup:             {ReasonCoordinator, true},
	kafka.IllegalGeneration:                  {ReasonFenced, false},
	kafka.UnknownMemberId:                    {ReasonFenced, false},
	kafka.RebalanceInProgress:                {ReasonFenced, false},
	kafka.FencedInstanceID:                   {ReasonFenced, false},
	kafka.TopicAuthorizationFailed:           {ReasonAuthorization, false},
	kafka.GroupAuthorizationFailed:           {ReasonAuthorization, false},
	kafka.ClusterAuthorizationFailed:         {ReasonAuthorization, false},
	kafka.TransactionalIDAuthorizationFailed: {ReasonAuthorization, false},
	kafka.SASLAuthenticationFailed:           {ReasonAuthentication, false},
	kafka.UnsupportedSASLMechanism:           {ReasonAuthentication, false},
	kafka.UnsupportedVersion:                 {ReasonUnsupported, false},
	kafka.UnsupportedForMessageFormat:        {ReasonUnsupported, false},
	kafka.UnsupportedCompressionType:         {ReasonUnsupported, false},
	kafka.ThrottlingQuotaExceeded:            {ReasonThrottled, true},
}

func classify(err error) (Reason, bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason, e.Retry
	}
	var code kafka.Error
	if errors.As(err, &code) {
		if c, ok := codes[code]; ok {
			return c.reason, c.retry
		}
		if code == kafka.Unknown || code.Temporary() {
			return ReasonBroker, true
		}
		return ReasonRejected, false
	}
	var (
		timeout interface{ Timeout() bool }
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		netErr  net.Error
	)
	switch {
	case errors.Is(err, ErrOffsetOutOfRange):
		return ReasonOutOfRange, false
	case errors.Is(err, context.Canceled):
		return ReasonCanceled, false
	case errors.Is(err, protocol.ErrNoTopic), errors.Is(err, protocol.ErrNoPartition):
		return ReasonUnknownTopic, true // The cached metadata may be older than the topic.
	case errors.Is(err, protocol.ErrNoLeader):
		return ReasonLeader, true
	case errors.Is(err, errCorrupt):
		return ReasonCorrupt, true // Damage on the way heals; damage at rest is for the caller to give up on.
	case errors.Is(err, errUnsupported):
		return ReasonUnsupported, false
	case errors.Is(err, errTooLarge):
		return ReasonTooLarge, false
	case errors.Is(err, errCredentials), errors.As(err, &cert), errors.As(err, &unknown):
		return ReasonAuthentication, false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return ReasonTimeout, true
	case errors.As(err, &netErr), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed):
		return ReasonConnection, true
	default:
		// What is left are kafka-go's own words for broken conversations, such as a wrong correlation id.
		return ReasonConnection, true
	}
}

// fail wraps err once with what was tried, and counts it.
func (c *Client) fail(op, object string, partition int32, err error) error {
	err = c.unreached(err)
	reason, retry := classify(err)
	c.metrics.errors.WithLabelValues(op, string(reason)).Inc()
	return &Error{Op: op, Object: object, Partition: partition, Reason: reason, Retry: retry, Err: err}
}

// unreached replaces "no such topic" and "no such broker" by why the cluster was never reached, if it was not: a wrong
// password, say. kafka-go tells the reason to those only who ask for metadata, and the others that there is no topic.
func (c *Client) unreached(err error) error {
	if !errors.Is(err, protocol.ErrNoTopic) && !errors.Is(err, kafka.BrokerNotAvailable) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // It is answered from memory.
	defer cancel()
	if _, cause := c.kc.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}}); cause != nil {
		return cause
	}
	return err
}

// skippedTo is where a log begins now that has lost the offset pos to retention.
func skippedTo(err error, pos int64) (int64, bool) {
	var out *OffsetOutOfRangeError
	if errors.As(err, &out) && out.Start > pos {
		return out.Start, true
	}
	return 0, false
}
