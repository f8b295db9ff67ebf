package realkafka

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// Version is the Kafka that is run unless another is asked for.
const Version = "4.3.1"

// Listener is a door of each broker. Brokers talk to each other by one that no client is told of, so that what a caller
// puts before a listener stands between clients and brokers only.
type Listener string

// The listeners. Plain is always there.
const (
	Plain   Listener = "PLAINTEXT"
	TLS     Listener = "TLS"
	SASL    Listener = "SASL"    // with a login, without TLS
	SASLTLS Listener = "SASLTLS" // with both
)

const (
	internal   Listener = "INTERNAL"
	controller Listener = "CONTROLLER"
)

var protocols = map[Listener]string{Plain: "PLAINTEXT", TLS: "SSL", SASL: "SASL_PLAINTEXT", SASLTLS: "SASL_SSL",
	internal: "PLAINTEXT", controller: "PLAINTEXT"}

// The mechanisms of a User.
const (
	MechanismPlain    = "PLAIN"
	MechanismScram256 = "SCRAM-SHA-256"
	MechanismScram512 = "SCRAM-SHA-512"
)

// User may log in at the listeners SASL and SASLTLS.
type User struct{ Mechanism, Name, Password string }

// Options say which cluster is started.
type Options struct {
	Version   string     // One of Versions; Version by default.
	Brokers   int        // 1 by default. Each is a controller too.
	Listeners []Listener // Beside Plain.
	Users     []User
	// Dir keeps data and ports over Close. By default a temporary folder is used, and removed by Close.
	Dir string
	// Advertise gives the address that clients are told for a listener of a broker that listens at addr: the caller's
	// proxy, say. By default clients are told addr.
	Advertise func(node int, l Listener, addr string) string
	// Replication is the factor of new topics and of Kafka's own; by default 3, or as many as there are brokers.
	Replication int
	MinInSync   int // min.insync.replicas, by default one less than Replication, but 1 at least.
	HeapMiB     int // of each broker; 256 by default.
	// Properties are set over those that the package chooses, in every broker's server.properties.
	Properties map[string]string
	Log        *slog.Logger // May be nil.
}

func (o *Options) setDefaults() {
	if o.Version == "" {
		o.Version = Version
	}
	o.Brokers = max(o.Brokers, 1)
	if o.Replication == 0 {
		o.Replication = min(o.Brokers, 3)
	}
	if o.MinInSync == 0 {
		o.MinInSync = max(o.Replication-1, 1)
	}
	if o.HeapMiB == 0 {
		o.HeapMiB = 256
	}
	o.Listeners = slices.Concat([]Listener{Plain}, slices.DeleteFunc(slices.Clone(o.Listeners),
		func(l Listener) bool { return l == Plain }))
	if o.Advertise == nil {
		o.Advertise = func(_ int, _ Listener, addr string) string { return addr }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) validate() error {
	var errs []error
	if _, ok := releases[o.Version]; !ok {
		errs = append(errs, fmt.Errorf("version %q is none of %v", o.Version, Versions()))
	}
	if o.Brokers > 9 {
		errs = append(errs, fmt.Errorf("%d brokers, 9 are allowed", o.Brokers))
	}
	if o.Replication > o.Brokers || o.MinInSync > o.Replication {
		errs = append(errs, fmt.Errorf("%d brokers, replication %d and %d in sync do not go together", o.Brokers, o.Replication,
			o.MinInSync))
	}
	for _, l := range o.Listeners {
		if _, ok := protocols[l]; !ok || l == internal || l == controller {
			errs = append(errs, fmt.Errorf("listener %q is none of %v", l, []Listener{Plain, TLS, SASL, SASLTLS}))
		}
	}
	for _, u := range o.Users {
		if !slices.Contains([]string{MechanismPlain, MechanismScram256, MechanismScram512}, u.Mechanism) {
			errs = append(errs, fmt.Errorf("user %q: unknown mechanism %q", u.Name, u.Mechanism))
		}
	}
	return errors.Join(errs...)
}

func (o *Options) has(l Listener) bool { return slices.Contains(o.Listeners, l) }
