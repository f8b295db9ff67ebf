package ingest

import (
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Config is how the loop reads and writes. The zero value is not usable; SetDefaults gives what suits most.
type Config struct {
	// Start is where a topic is begun that was never read: a duration back from now, "beginning" or "end".
	Start Start `yaml:"start"`
	// InsertsPerSecond is about how many inserts the process makes a second over all partitions: the more partitions have
	// data, the longer each gathers, between MinLinger and MaxLinger.
	InsertsPerSecond float64             `yaml:"inserts_per_second"`
	MinLinger        strictyaml.Duration `yaml:"min_linger"`
	MaxLinger        strictyaml.Duration `yaml:"max_linger"`
	// MaxRows bounds the rows of a batch, MaxBatch the memory of one, MaxMemory that of all together.
	MaxRows   int           `yaml:"max_rows"`
	MaxBatch  pipeline.Size `yaml:"max_batch"`
	MaxMemory pipeline.Size `yaml:"max_memory"`
	// FetchBytes bounds one fetch, FetchWait is how long it waits for records.
	FetchBytes pipeline.Size       `yaml:"fetch_bytes"`
	FetchWait  strictyaml.Duration `yaml:"fetch_wait"`
	// Clock is what heartbeats tell: "wall", or "records" for replays, the latest timestamp read.
	Clock ClockKind `yaml:"clock"`
	// Heartbeat is how often a caught-up partition says so, IdleGrace how far behind the clock its watermark is then.
	Heartbeat strictyaml.Duration `yaml:"heartbeat"`
	IdleGrace strictyaml.Duration `yaml:"idle_grace"`
	// InsertTimeout bounds one try; RetryMin and RetryMax the pauses between tries.
	InsertTimeout strictyaml.Duration `yaml:"insert_timeout"`
	RetryMin      strictyaml.Duration `yaml:"retry_min"`
	RetryMax      strictyaml.Duration `yaml:"retry_max"`
	// AnewAfter is how long a log must look shorter than what is stored before it is taken for a new one: a broker that has
	// just become leader may tell an old end for a moment.
	AnewAfter strictyaml.Duration `yaml:"anew_after"`
	// Settle is how long a partition rests whose committed offset was lost or set by hand: nobody knows then which range
	// was being inserted, so what is still on its way must have come before another range is chosen.
	Settle strictyaml.Duration `yaml:"settle"`

	Places strictyaml.Positions `yaml:"-"`
}

// reservationAge is how old a reservation may be when an insert begins. It is far below the store's window of tokens.
const reservationAge = 60 * time.Second

// maxRowsLimit is what one insert block of the store may hold.
const maxRowsLimit = 200_000

// SetDefaults is what holds for keys that a file leaves out.
func (c *Config) SetDefaults() {
	*c = Config{
		Start:            Start{Back: time.Hour},
		InsertsPerSecond: 5,
		MinLinger:        duration(200 * time.Millisecond),
		MaxLinger:        duration(5 * time.Second),
		MaxRows:          maxRowsLimit,
		MaxBatch:         32 << 20,
		MaxMemory:        256 << 20,
		FetchBytes:       1 << 20,
		FetchWait:        duration(500 * time.Millisecond),
		Clock:            ClockWall,
		Heartbeat:        duration(5 * time.Second),
		IdleGrace:        duration(10 * time.Second),
		InsertTimeout:    duration(30 * time.Second),
		RetryMin:         duration(250 * time.Millisecond),
		RetryMax:         duration(15 * time.Second),
		AnewAfter:        duration(10 * time.Second),
		Settle:           duration(time.Minute),
	}
}

func duration(d time.Duration) strictyaml.Duration { return strictyaml.Duration(d) }

// Validate reports values that cannot work, each with its place.
func (c *Config) Validate() error {
	var errs strictyaml.Errors
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, c.Places.Of(key).Errorf(format, args...))
		}
	}
	check(c.InsertsPerSecond > 0, "inserts_per_second", "inserts_per_second must be positive")
	check(c.MinLinger > 0 && c.MinLinger <= c.MaxLinger, "min_linger", "min_linger must be positive and at most max_linger")
	check(c.MaxLinger.Std() <= time.Minute, "max_linger", "max_linger must be at most 1m: a reservation holds for that long")
	check(c.MaxRows > MaxEvents && c.MaxRows <= maxRowsLimit, "max_rows", "max_rows must be above %d, which one record may give, and at most %d", MaxEvents, maxRowsLimit)
	check(c.MaxBatch >= 1<<20, "max_batch", "max_batch must be at least 1MiB")
	check(c.MaxMemory >= c.MaxBatch, "max_memory", "max_memory must be at least max_batch")
	check(c.FetchBytes >= 1<<10, "fetch_bytes", "fetch_bytes must be at least 1KiB")
	check(c.FetchWait > 0, "fetch_wait", "fetch_wait must be positive")
	check(c.Heartbeat > 0, "heartbeat", "heartbeat must be positive")
	check(c.InsertTimeout > 0, "insert_timeout", "insert_timeout must be positive")
	check(c.Settle >= c.InsertTimeout, "settle", "settle must be at least insert_timeout, %s: an insert may be on its way for so long", c.InsertTimeout)
	check(c.RetryMin > 0 && c.RetryMin <= c.RetryMax, "retry_min", "retry_min must be positive and at most retry_max")
	return errs.Err()
}

// Start is where a topic is begun that was never read.
type Start struct {
	Beginning, End bool
	Back           time.Duration // where neither is set
}

// UnmarshalText reads a duration or one of two words.
func (s *Start) UnmarshalText(text []byte) error {
	switch string(text) {
	case "beginning":
		*s = Start{Beginning: true}
	case "end":
		*s = Start{End: true}
	default:
		var d strictyaml.Duration
		if err := d.UnmarshalText(text); err != nil {
			return &strictyaml.Error{Msg: fmt.Sprintf("%q is neither a duration nor beginning nor end", text)}
		}
		*s = Start{Back: d.Std()}
	}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Start) String() string {
	switch {
	case s.Beginning:
		return "beginning"
	case s.End:
		return "end"
	}
	return strictyaml.Duration(s.Back).String()
}

// ClockKind chooses the ingest clock.
type ClockKind string

// The ingest clocks.
const (
	ClockWall    ClockKind = "wall"
	ClockRecords ClockKind = "records"
)

// UnmarshalText reads the word.
func (k *ClockKind) UnmarshalText(text []byte) (err error) {
	*k, err = strictyaml.Enum("clock", text, ClockWall, ClockRecords)
	return err
}
