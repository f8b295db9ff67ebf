// Package console shows what Tocsin knows to people and programs: the web page of open incidents, a page for each
// incident, and the JSON API that the command line uses. It decides nothing; what a person orders goes to the commands
// topic like everybody else's word.
package console

import (
	"context"
	"errors"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Reader reads the incident log. It is safe for concurrent use; the application closes it after the server.
type Reader interface {
	// Incidents returns the latest state of incidents, newest first; open ones only, or those that ended lately too.
	Incidents(ctx context.Context, openOnly bool, limit int) ([]incident.Incident, error)
	// Events returns an incident's log in order, ErrNotFound if there is none.
	Events(ctx context.Context, id string) ([]incident.Event, error)
}

// ErrNotFound: no incident has this id.
var ErrNotFound = errors.New("no such incident")

// Delivery is what was said to whom about an incident.
type Delivery struct {
	Incident string    `json:"incident"`
	Receiver string    `json:"receiver"`
	Action   string    `json:"action"` // trigger, resolve, post, update, …
	Outcome  string    `json:"outcome"`
	Detail   string    `json:"detail,omitempty"`
	At       time.Time `json:"at"` // wall clock
}

// Deliveries reads the outbox: all that concerns an incident, or with "" all of late, oldest first.
type Deliveries func(incident string) []Delivery

// Commander passes a person's word on.
type Commander interface {
	Command(ctx context.Context, c incident.Command) error
}

// Partition is how far one Kafka partition has been read.
type Partition struct {
	Stream    string    `json:"stream"`
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Lag       int64     `json:"lag"`
	Watermark time.Time `json:"watermark,omitzero"`
	Problem   string    `json:"problem,omitempty"`
}

// Status is how Tocsin itself fares.
type Status struct {
	Version    string        `json:"version"`
	Tick       uint64        `json:"tick"`
	To         time.Time     `json:"to,omitzero"`    // event time up to which has been judged
	Clock      time.Time     `json:"clock,omitzero"` // the ingest clock then
	Lag        time.Duration `json:"lag_ns"`
	Leading    bool          `json:"leading"`
	Partitions []Partition   `json:"partitions"`
	// Problems are Tocsin's own troubles, in sentences; empty means healthy.
	Problems []string `json:"problems"`
	// NotReady are those of them that keep this process from doing its work. After a reload that failed it goes on with what was
	// in force, so that is a problem and no reason not to be ready.
	NotReady []string `json:"not_ready"`
}
