package signal

import (
	"fmt"
	"strings"
)

// Access tells reads from writes. They are separate keys everywhere, because a service's many healthy
// reads would otherwise hide its few failing writes.
type Access uint8

const (
	// Write is the zero value on purpose: what cannot be told to be a read is judged as a write.
	Write Access = iota
	Read
)

func (a Access) String() string {
	if a == Read {
		return "read"
	}
	return "write"
}

// ParseAccess reads the word used in events and files.
func ParseAccess(s string) (Access, error) {
	switch s {
	case "read":
		return Read, nil
	case "write":
		return Write, nil
	}
	return Write, fmt.Errorf("access %q is neither read nor write", s)
}

func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a *Access) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAccess(string(b))
	return err
}

// Outcome is how one request ended, seen from the service that answered it.
type Outcome uint8

const (
	Success Outcome = iota
	// Failure is the service's fault; only failures count into a failure rate.
	Failure
	// Rejected is the caller's fault: most 4xx.
	Rejected
	// Throttled was refused to protect the service: 429 and its like.
	Throttled
	// NumOutcomes is the length of an array indexed by Outcome.
	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{"success", "failure", "rejected", "throttled"}

func (o Outcome) String() string {
	if o < NumOutcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// ParseOutcome reads the word used in events and files.
func ParseOutcome(s string) (Outcome, error) {
	for i, n := range outcomeNames {
		if s == n {
			return Outcome(i), nil
		}
	}
	return 0, fmt.Errorf("outcome %q is none of %s", s, strings.Join(outcomeNames[:], ", "))
}

func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o *Outcome) UnmarshalText(b []byte) (err error) {
	*o, err = ParseOutcome(string(b))
	return err
}

// Path is a service's operation under one access.
type Path struct {
	Service   string `json:"service"`
	Operation string `json:"operation"`
	Access    Access `json:"access"`
}

func (p Path) String() string { return p.Service + " / " + p.Operation + " / " + p.Access.String() }

// Compare orders paths by service, operation, access.
func (p Path) Compare(q Path) int {
	if c := strings.Compare(p.Service, q.Service); c != 0 {
		return c
	}
	if c := strings.Compare(p.Operation, q.Operation); c != 0 {
		return c
	}
	return int(p.Access) - int(q.Access)
}
