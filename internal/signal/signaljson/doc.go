// Package signaljson is the one place that knows native events as JSON: the contract of schemas/kafka, used for records
// on Kafka and for lines of recordings. It turns JSON into events of package signal and back; it does not know topics,
// files, limits on event time or what becomes of an event that cannot be read.
package signaljson

import "fmt"

// Reason says in one word why an event could not be read. The words are those of dead letters.
type Reason string

const (
	Malformed Reason = "malformed"     // not JSON, or cut off
	Missing   Reason = "missing_field" // a required field is absent, null or empty
	Invalid   Reason = "invalid_value" // a field has a value that it cannot have
)

// Error tells why and where in the event.
type Error struct {
	Reason Reason
	Field  string // "" for the event as a whole
	Msg    string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Msg
	}
	return e.Field + ": " + e.Msg
}

func missing(field string) error { return &Error{Missing, field, "is required"} }

func invalid(field, format string, args ...any) error {
	return &Error{Invalid, field, fmt.Sprintf(format, args...)}
}
