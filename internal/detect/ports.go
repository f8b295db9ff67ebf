// Package detect turns cells into findings and findings into incidents: the second loop. Everything it concludes is a
// function of rules, catalogue, stored inputs and commands; it never reads the wall clock.
package detect

import (
	"context"
	"errors"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Partition is one partition of one life of a topic.
type Partition struct {
	Topic       string        `json:"topic"`
	Incarnation uint32        `json:"incarnation"`
	Partition   int32         `json:"partition"`
	Stream      signal.Stream `json:"stream"`
}

// Mark is how far a partition has come: rows of offsets below End are stored, complete and countable, and no
// event older than Watermark is expected any more.
type Mark struct {
	Partition
	End       int64     `json:"end"`
	Watermark time.Time `json:"watermark"`
}

// Progress is the ledger's state at one moment. Marks are sorted by topic, incarnation, partition.
type Progress struct {
	Marks []Mark
	// Clock is the ingest clock: the wall clock, or in a replay the latest record timestamp seen.
	Clock time.Time
}

// Tick is the record of one claim: all that its result depends on, apart from the state before it.
type Tick struct {
	Number uint64    `json:"number"`
	Epoch  uint64    `json:"epoch"`
	From   time.Time `json:"from"` // end of the last evaluated bucket; the steps are (From, To] by signal.BucketSize
	To     time.Time `json:"to"`
	Marks  []Mark    `json:"marks"` // the offset vector: rows below End belong to this tick or an earlier one
	Clock  time.Time `json:"clock"`
	// Partial names streams that were not waited for any longer: their silence says nothing.
	Partial   []signal.Stream    `json:"partial,omitempty"`
	Commands  []incident.Command `json:"commands,omitempty"`
	Answers   []Answer           `json:"answers,omitempty"` // of sql rules; they count from the tick's first step on
	Rules     string             `json:"rules"`             // revision of the rule files
	Catalogue string             `json:"catalogue"`         // revision of the catalogue
	Binary    string             `json:"binary"`
}

// Inputs is what a tick sees: rows that no earlier tick saw, each list in a fixed order (by time, then key), with
// cells of the same key and bucket summed. Rows may lie after To (they wait) or before From (they are late).
type Inputs struct {
	Tick    Tick
	Cells   []signal.Cell
	Gauges  []signal.Gauge
	Tickets []signal.Ticket // a ticket's first sight by id, later ones of the same id are not repeated
	Changes []signal.Change // first sight by id and phase
	Alerts  []signal.Alert
}

// Rows is how many there are.
func (in *Inputs) Rows() int {
	return len(in.Cells) + len(in.Gauges) + len(in.Tickets) + len(in.Changes) + len(in.Alerts)
}

// Outputs is what a tick concluded.
type Outputs struct {
	// Seen is how many rows the tick was given: a replay that finds fewer knows that it misses some. It is no conclusion.
	Seen        int
	Transitions []incident.Transition
	Events      []incident.Event
	Warnings    []incident.Warning
	// Checkpoint is the detector's state after the tick, nil on most ticks.
	Checkpoint []byte
}

// Resume is where a restarted detector goes on: the newest checkpoint, and the inputs of the ticks after it in
// order. The last of them may have been claimed but not finished: Unfinished says so, and its outputs have to
// be committed again (they carry the tick's token, so nothing doubles).
type Resume struct {
	Checkpoint     []byte
	CheckpointTick uint64 // 0: none
	Ticks          []Inputs
	Unfinished     bool
	// What the log says of the ticks that are done, for a detector whose replay comes to something else, because its program
	// or its rules are others: the newest transition of each finding since the checkpoint, and the newest event of each incident
	// that is open or ended within the last hour of event time. Findings of high_impact rules are left out.
	Findings  []incident.Transition
	Incidents []incident.Event
}

// ErrSuperseded says that another detector has a higher epoch: stop at once, write nothing.
var ErrSuperseded = errors.New("another detector leads")

// Timeline is the stored past as the detector sees it, and the place for its conclusions. The loop owns it and
// calls it from one goroutine. Implementations are internal/clickhouse and detect/memory; timelinetest
// holds them to the same contract.
type Timeline interface {
	// Lead takes the lead: it claims the next epoch and returns it once it is sure to be the highest.
	Lead(ctx context.Context, owner string) (epoch uint64, err error)
	// Resume reads what a new leader needs.
	Resume(ctx context.Context) (Resume, error)
	// Recall is Resume for a detector that cannot read the checkpoint: it gives none, but the ticks of the last window of event
	// time, and what the log says of the last week.
	Recall(ctx context.Context, window time.Duration) (Resume, error)
	// KeepSource stores the text of a revision. It may be repeated.
	KeepSource(ctx context.Context, s Source) error
	SourceStore
	// Progress reads the ledger.
	Progress(ctx context.Context) (Progress, error)
	// Claim stores the tick with its inputs, under the tick's token, and returns them as stored. If a tick of this
	// number was stored before, by a lower epoch, that one is returned (compare Inputs.Tick with what was asked); a higher
	// epoch is ErrSuperseded.
	Claim(ctx context.Context, t Tick) (Inputs, error)
	// Commit stores the outputs under the tick's token. It may be repeated with the same outputs, and for the last tick
	// with a checkpoint alone, where the first time had none.
	Commit(ctx context.Context, t Tick, o Outputs) error
}
