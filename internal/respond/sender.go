package respond

import (
	"context"
	"time"
)

// Action is one thing to do at a place.
type Action string

const (
	ActionOpen        Action = "open"        // say it for the first time, or again after a close
	ActionRaise       Action = "raise"       // say it again because it became worse
	ActionUpdate      Action = "update"      // edit what was said
	ActionNote        Action = "note"        // add what changed
	ActionAcknowledge Action = "acknowledge" // somebody has it
	ActionClose       Action = "close"       // it is over
)

// Actions is the closed set, for metrics.
var Actions = []Action{ActionOpen, ActionRaise, ActionUpdate, ActionNote, ActionAcknowledge, ActionClose}

// Delivery is one step to be taken at a place.
type Delivery struct {
	Action Action
	// Key is the reference that the open used or got; empty on a first open of a place that gives references itself.
	Key string
	// Uncertain says that this step was tried before and nobody knows whether it arrived. A place without idempotency
	// keys has to look before it repeats; Since is when it was first tried.
	Uncertain bool
	Since     time.Time
	Notice    Notice
	Notes     []Note // with ActionNote, oldest first
	Dropped   int    // notes before these that are not told one by one
}

// Receipt is what the provider answered.
type Receipt struct {
	Key string // the reference to use from now on, empty to keep the one in use
	// Bare says why the provider refused the message as it was, where one without its details went out instead.
	Bare *SendError
}

// Sender delivers to one place. It is called by one goroutine at a time, may be called after an error, and must give
// up when ctx ends. Errors should be *SendError; they must not contain secrets. The loop never closes it.
type Sender interface {
	// Key is the idempotency key for an incident, or "" where the provider has none.
	Key(incident string) string
	Send(ctx context.Context, d Delivery) (Receipt, error)
}

// Place is one way out into the world: a routing key at PagerDuty, a channel in Slack. Receivers that name the same
// place share it, so that it hears everything once.
type Place struct {
	// ID is a function of where messages go, not of names in files: renaming a receiver moves nothing. It holds no secret.
	ID        string
	Receivers []string
	Kind      string
	Pages     bool          // wakes people: only incidents that may page, and only when they begin or get worse
	Edits     bool          // what was said can be edited, so content changes are worth telling
	Notes     bool          // changes are told one by one as well
	Pace      time.Duration // least time between two messages
	Sender    Sender        // nil in a simulation
}

// Store keeps what was decided and done across restarts. Values are small JSON objects. Put returns when the value
// survives a kill; a nil value forgets the key. Put is called by one goroutine at a time. Close belongs to whoever made the store.
type Store interface {
	Load(ctx context.Context) (map[string][]byte, error)
	Put(ctx context.Context, key string, value []byte) error
	Close() error
}
