package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Report is what a campaign did and found.
type Report struct {
	Options Options
	Kinds   map[string]int // faults by kind
	Faults  int
	Events  uint64            // in the records that were written
	Steps   map[string]uint64 // requests that passed, by step of the protocol

	Records, Batches, DeadLetters int
	Counted                       uint64 // events that must be in the tables
	Deleted                       int    // records that were deleted with their topic before they were stored
	DeadAlone                     int    // dead letters of those

	MemberStarts, EngineRestarts, BrokerRestarts int
	Storm, Drain, Took                           time.Duration

	Missing, Double uint64 // events, gauges, tickets and dead letters, over all tables
	Wrong           int    // batches and figures of the ledger that are wrong
	Differences     []string
	Stuck           []string // what was not stored, or in no tick, when the time was up
	Trouble         []string // faults that could not be injected as meant
}

// OK tells whether everything is there once.
func (r *Report) OK() bool {
	return r.Missing == 0 && r.Double == 0 && r.Wrong == 0 && len(r.Differences) == 0 && len(r.Stuck) == 0
}

const differencesShown = 40

// Write prints the report.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintf(w, "\nfaults by kind\n")
	for _, k := range slices.Sorted(maps.Keys(r.Kinds)) {
		fmt.Fprintf(w, "  %5d  %s\n", r.Kinds[k], k)
	}
	fmt.Fprintf(w, "\nsteps of the protocol that passed the proxies\n")
	for _, k := range slices.Sorted(maps.Keys(r.Steps)) {
		fmt.Fprintf(w, "  %8d  %s\n", r.Steps[k], k)
	}
	for _, line := range r.Trouble {
		fmt.Fprintf(w, "  could not: %s\n", line)
	}
	fmt.Fprintf(w, "\nseed %d, %s broker: %d faults over %d events in %d records\n", r.Options.Seed, r.Options.Broker, r.Faults, r.Events, r.Records+r.Deleted)
	fmt.Fprintf(w, "  %d starts of members, %d restarts of ClickHouse, %d of brokers; storm %.0f s, drained in %.0f s\n", r.MemberStarts, r.EngineRestarts, r.BrokerRestarts,
		r.Storm.Seconds(), r.Drain.Seconds())
	fmt.Fprintf(w, "  stored: %d events and %d dead letters of %d records in %d batches; %d records were deleted with their topics before (%d dead letters of them are there)\n",
		r.Counted, r.DeadLetters, r.Records, r.Batches, r.Deleted, r.DeadAlone)
	fmt.Fprintf(w, "  missing %d, double %d, wrong in the ledger %d\n", r.Missing, r.Double, r.Wrong)
	for i, d := range r.Differences {
		if i == differencesShown {
			fmt.Fprintf(w, "  … and %d more\n", len(r.Differences)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n", d)
	}
	for _, s := range r.Stuck {
		fmt.Fprintf(w, "  stuck: %s\n", s)
	}
	if !r.OK() {
		fmt.Fprintf(w, "everything is kept in %s; again with -seed %d\n", r.Options.Dir, r.Options.Seed)
	}
}
