package scenario

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Labels is the truth as a recording's labels.yaml has it.
type Labels struct {
	Incidents []Incident `yaml:"incidents"`
	Quiet     []Span     `yaml:"quiet"`
}

// Incident is one thing that was wrong. Any part of scope and cause may be missing.
type Incident struct {
	ID    string    `yaml:"id" strict:"required"`
	Start time.Time `yaml:"start" strict:"required"`
	End   time.Time `yaml:"end" strict:"required"`
	Scope Scope     `yaml:"scope"`
	Cause Cause     `yaml:"cause"`
}

// Scope is where it showed.
type Scope struct {
	Service    string            `yaml:"service,omitempty"`
	Operation  string            `yaml:"operation,omitempty"`
	Access     string            `yaml:"access,omitempty"`
	Area       string            `yaml:"area,omitempty"`
	Attributes map[string]string `yaml:"attributes,omitempty"`
}

// Cause is what did it.
type Cause struct {
	Service    string            `yaml:"service,omitempty"`
	Resource   string            `yaml:"resource,omitempty"`
	Change     string            `yaml:"change,omitempty"`
	Attributes map[string]string `yaml:"attributes,omitempty"`
}

// Span is a time in which nothing was wrong.
type Span struct {
	From time.Time `yaml:"from" strict:"required"`
	To   time.Time `yaml:"to" strict:"required"`
}

// Figure is a number that a report of the day states, and which the scenario must therefore show.
type Figure struct {
	What      string        `yaml:"what" strict:"required"`
	Service   string        `yaml:"service" strict:"required"`
	Operation string        `yaml:"operation" strict:"required"`
	Access    signal.Access `yaml:"access" strict:"required"`
	From      Clock         `yaml:"from" strict:"required"` // the span over which it is taken
	To        Clock         `yaml:"to" strict:"required"`
	Share     float64       `yaml:"share" strict:"required"` // of failures
	Within    float64       `yaml:"within" strict:"required"`
	Source    Source        `yaml:"source" strict:"required"`
}

// Path is what the figure is about.
func (f Figure) Path() signal.Path {
	return signal.Path{Service: f.Service, Operation: f.Operation, Access: f.Access}
}

// Figures are the scenario's figures to be checked against a run.
func (s *Scenario) Figures() []Figure { return s.file.Truth.Figures }

// Time turns a time of the scenario's day into an instant.
func (s *Scenario) Time(c Clock) time.Time { return s.time(c) }

func (s *Scenario) labels() (l Labels) {
	for _, in := range s.file.Truth.Incidents {
		l.Incidents = append(l.Incidents, Incident{ID: in.ID, Start: s.time(in.Start), End: s.time(in.End), Scope: in.Scope, Cause: in.Cause})
	}
	for _, q := range s.file.Truth.Quiet {
		l.Quiet = append(l.Quiet, Span{From: s.time(q.From), To: s.time(q.To)})
	}
	return l
}
