// Package recording reads and writes recordings: folders with a day's native events, one a line, and beside them the
// catalogue and, where it is known, the truth. Backtests, explanations and tests use it. It does not replay, score or
// interpret anything.
package recording

import "fmt"

// The files of a recording. The events may be compressed, which their name says.
const (
	eventsFile    = "events.jsonl"
	catalogueFile = "catalogue.yaml"
	labelsFile    = "labels.yaml"
	rulesFolder   = "rules"
)

// LineError is a line that is no event.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }
