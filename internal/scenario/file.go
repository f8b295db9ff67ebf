package scenario

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// file is a scenario file as written.
type file struct {
	Title     string         `yaml:"title" strict:"required"`
	Date      time.Time      `yaml:"date" strict:"required"`
	Start     Clock          `yaml:"start" strict:"required"`
	End       Clock          `yaml:"end" strict:"required"`
	Seed      int64          `yaml:"seed"`
	Catalogue string         `yaml:"catalogue" strict:"required"` // beside the scenario file
	World     string         `yaml:"world" strict:"required"`
	Tickets   string         `yaml:"tickets"`
	Shifts    map[string]Dur `yaml:"shifts"`
	Drivers   []driverFile   `yaml:"drivers"`
	Effects   []effectFile   `yaml:"effects"`
	Bursts    []burstFile    `yaml:"ticket_bursts"`
	Changes   []changeFile   `yaml:"changes"`
	Routine   routineFile    `yaml:"routine_changes"`
	Actors    []actorFile    `yaml:"actors"`
	Truth     truthFile      `yaml:"truth"`
}

// Dur is short for the duration of configuration files.
type Dur = strictyaml.Duration

// driverFile is a curve through points; before the first it has the first's value, after the last the last's.
type driverFile struct {
	Name   string         `yaml:"name" strict:"required"`
	Source Source         `yaml:"source" strict:"required"`
	Note   string         `yaml:"note"`
	Shift  string         `yaml:"shift"`
	Points []pointFile    `yaml:"points" strict:"required"`
	Pos    strictyaml.Pos `yaml:"-"`
}

type pointFile struct {
	At    Clock   `yaml:"at" strict:"required"`
	Value float64 `yaml:"value"`
	Shape Shape   `yaml:"shape"` // of the way from the point before
}

// selector chooses gauges or paths. Of several conditions all must hold.
type selector struct {
	Resource  string         `yaml:"resource"` // with Metric: a gauge
	Metric    string         `yaml:"metric"`
	DependsOn string         `yaml:"depends_on"` // a resource or service, over any number of steps
	Services  []string       `yaml:"services"`
	Operation string         `yaml:"operation"`
	Access    *signal.Access `yaml:"access"`
	Pos       strictyaml.Pos `yaml:"-"`
}

// effectFile says what a driver at 1 does to what is chosen; below 1 it does proportionally less. Of several effects of
// one driver on one path, each key of a later one replaces the earlier one's.
type effectFile struct {
	Driver         string         `yaml:"driver" strict:"required"`
	Source         Source         `yaml:"source" strict:"required"`
	Note           string         `yaml:"note"`
	Delay          Dur            `yaml:"delay"`
	On             selector       `yaml:"on" strict:"required"`
	Add            float64        `yaml:"add"`             // gauges: added to the value
	FailureShare   *float64       `yaml:"failure_share"`   // paths: share of requests that fail because of it
	FailureLatency *Dur           `yaml:"failure_latency"` // how long those wait, the median
	Status         *string        `yaml:"status"`
	Error          *string        `yaml:"error"`
	ThrottledShare *float64       `yaml:"throttled_share"`
	Latency        *float64       `yaml:"latency"` // how many times longer the others take
	Traffic        *float64       `yaml:"traffic"` // how many times the usual traffic comes
	Pos            strictyaml.Pos `yaml:"-"`
}

// burstFile adds tickets of an area while a driver is up.
type burstFile struct {
	Driver  string         `yaml:"driver" strict:"required"`
	Source  Source         `yaml:"source" strict:"required"`
	Delay   Dur            `yaml:"delay"`
	Area    string         `yaml:"area" strict:"required"`
	PerHour float64        `yaml:"per_hour" strict:"required"`
	Pos     strictyaml.Pos `yaml:"-"`
}

type changeFile struct {
	ID         string            `yaml:"id" strict:"required"`
	Kind       string            `yaml:"kind" strict:"required"`
	Target     string            `yaml:"target"`
	Title      string            `yaml:"title"`
	Actor      string            `yaml:"actor"`
	Dose       float64           `yaml:"dose"`
	Start      Clock             `yaml:"start" strict:"required"`
	End        *Clock            `yaml:"end"`
	Outcome    signal.Phase      `yaml:"outcome"` // finished (the default) or aborted
	Shift      string            `yaml:"shift"`
	Attributes map[string]string `yaml:"attributes"`
	Source     Source            `yaml:"source" strict:"required"`
	Note       string            `yaml:"note"`
	Pos        strictyaml.Pos    `yaml:"-"`
}

// routineFile is the daily run of changes that nobody wrote down beforehand.
type routineFile struct {
	PerHour  float64       `yaml:"per_hour"`
	Services []string      `yaml:"services"` // all if empty
	Lasting  Dur           `yaml:"lasting"`
	Kinds    []routineKind `yaml:"kinds"`
}

type routineKind struct {
	Kind   string   `yaml:"kind" strict:"required"`
	Weight float64  `yaml:"weight" strict:"required"`
	Titles []string `yaml:"titles" strict:"required"`
}

// actorFile is one caller that behaves unlike the others: a bot, a customer who runs into a limit.
type actorFile struct {
	Name      string         `yaml:"name" strict:"required"`
	Account   string         `yaml:"account"`
	Service   string         `yaml:"service" strict:"required"`
	Operation string         `yaml:"operation" strict:"required"`
	Access    signal.Access  `yaml:"access" strict:"required"`
	Rate      float64        `yaml:"rate" strict:"required"`
	Start     Clock          `yaml:"start" strict:"required"`
	End       Clock          `yaml:"end" strict:"required"`
	Shift     string         `yaml:"shift"`
	Rejected  float64        `yaml:"rejected"`
	Throttled float64        `yaml:"throttled"`
	Source    Source         `yaml:"source" strict:"required"`
	Note      string         `yaml:"note"`
	Pos       strictyaml.Pos `yaml:"-"`
}

type truthFile struct {
	Incidents []incidentFile `yaml:"incidents"`
	Quiet     []spanFile     `yaml:"quiet"`
	Figures   []Figure       `yaml:"figures"`
}

type incidentFile struct {
	ID      string         `yaml:"id" strict:"required"`
	Start   Clock          `yaml:"start" strict:"required"`
	End     Clock          `yaml:"end" strict:"required"`
	Scope   Scope          `yaml:"scope"`
	Cause   Cause          `yaml:"cause"`
	Drivers []string       `yaml:"drivers"` // whose failures are this incident's
	Source  Source         `yaml:"source" strict:"required"`
	Pos     strictyaml.Pos `yaml:"-"`
}

type spanFile struct {
	From Clock `yaml:"from" strict:"required"`
	To   Clock `yaml:"to" strict:"required"`
}
