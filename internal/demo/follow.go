package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// follower prints what Tocsin concludes and says, as it happens, each thing once.
type follower struct {
	api    *api
	screen *screen
	seen   map[string]uint64 // incident → sequence already printed
	said   map[string]bool   // who was told which incident already
	// told reads what the stand-ins hold now.
	told func() []Told
}

// Told is one thing that reached a stand-in.
type Told struct {
	To   string // PagerDuty, Slack
	ID   string // of the alert or message, which may be edited later
	What string // one line
}

// shown are the events worth a line on the screen; the others are in the log.
var shown = map[incident.EventType]string{
	incident.EventSuspected: "SUSPECTED", incident.EventWarned: "WARNING", incident.EventDeclared: "DECLARED",
	incident.EventSeverity: "SEVERITY", incident.EventAcknowledged: "ACKNOWLEDGED", incident.EventMitigated: "MITIGATED",
	incident.EventReopened: "REOPENED", incident.EventResolved: "RESOLVED", incident.EventMerged: "MERGED", incident.EventDismissed: "DISMISSED",
	incident.EventMuted: "MUTED", incident.EventUnmuted: "UNMUTED",
}

// poll prints what is new. A daemon that does not answer is no news: it may have been killed for a test.
func (f *follower) poll(ctx context.Context) error {
	list, err := f.api.Incidents(ctx)
	if err != nil {
		return err
	}
	for i := len(list) - 1; i >= 0; i-- {
		in := list[i]
		if f.seen[in.ID] >= in.Sequence {
			continue
		}
		a, err := f.api.Incident(ctx, in.ID, f.seen[in.ID], false)
		if err != nil {
			return err
		}
		for _, e := range a.Events {
			if e.Sequence <= f.seen[in.ID] {
				continue
			}
			f.seen[in.ID] = e.Sequence
			if word, ok := shown[e.Type]; ok {
				f.event(word, e)
			}
		}
	}
	f.tellings()
	return nil
}

func (f *follower) event(word string, e incident.Event) {
	f.screen.line("%s  %-12s %s", e.At.UTC().Format("15:04:05"), word, e.Reason)
	if e.Type != incident.EventDeclared && e.Type != incident.EventWarned {
		return
	}
	f.screen.line("%24s%s  [%s]", "", e.After.Title, e.After.Severity)
	if len(e.After.Suspects) > 0 {
		s := e.After.Suspects[0]
		f.screen.line("%24ssuspect: %s %s (%.0f%%)", "", s.Kind, called(s), s.Score*100)
	}
}

// tellings shows each alert and message when it first appears, as it reads then.
func (f *follower) tellings() {
	for _, t := range f.told() {
		if f.said[t.To+t.ID] {
			continue
		}
		f.said[t.To+t.ID] = true
		f.screen.line("%8s  %-12s %s", "", strings.ToUpper(t.To), t.What)
	}
}

func called(s incident.Suspect) string {
	if s.Title == "" {
		return s.ID
	}
	return fmt.Sprintf("%s (%s)", s.Title, s.ID)
}
