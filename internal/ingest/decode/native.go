package decode

import (
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// Native writes an event as a line of a recording. Tests and golden files compare events in this form.
func Native(e signal.Event) string {
	b, err := signaljson.AppendTyped(nil, e)
	if err != nil {
		return err.Error() // NaN and infinity cannot be written, and no decoder lets them in
	}
	return string(b)
}
