package signal

import "time"

// Stream names one kind of native event; each has a topic, a base table and a watermark of its own.
type Stream string

const (
	Requests Stream = "requests"
	Gauges   Stream = "gauges"
	Tickets  Stream = "tickets"
	Changes  Stream = "changes"
	Alerts   Stream = "alerts"
)

// Streams lists all streams in the order in which they are shown and processed.
var Streams = []Stream{Requests, Gauges, Tickets, Changes, Alerts}

// Event is one native event: *Request, *Gauge, *Ticket, *Change or *Alert.
type Event interface {
	// At is the event time, in UTC.
	At() time.Time
	Stream() Stream
}

// Request is one request, or Count equal ones, at the time it ended.
type Request struct {
	Time       time.Time
	Path       Path
	Outcome    Outcome
	Count      uint64        // at least 1
	Status     string        // protocol status as text, for samples
	Error      string        // error type, for samples
	Latency    time.Duration // negative if unknown
	Account    string        // customer organisation, "" if unknown
	Attempt    uint32        // 1 is a first try
	Attributes Attributes
	TraceID    string
	Estimated  bool // Count was scaled up from a sampling probability
}

// Gauge is one measurement of a resource.
type Gauge struct {
	Time       time.Time
	Resource   string
	Metric     string
	Value      float64
	Limit      float64 // 0 where no limit is known
	Unit       string
	Attributes Attributes
}

// Ticket is one customer-support contact. Text is masked before it is stored.
type Ticket struct {
	Time     time.Time
	ID       string
	Subject  string
	Text     string
	Account  string
	Area     string // as given by the help desk; "" lets the catalogue's words decide
	Service  string
	Language string
	Source   string
	Tags     []string
	Severity string
	URL      string
	Status   string
}

// ChangeKind says what was done.
type ChangeKind string

const (
	Deploy      ChangeKind = "deploy"
	Rollback    ChangeKind = "rollback"
	Job         ChangeKind = "job"
	Failover    ChangeKind = "failover"
	Flag        ChangeKind = "flag"
	Config      ChangeKind = "config"
	Migration   ChangeKind = "migration"
	Maintenance ChangeKind = "maintenance"
)

// ChangeKinds lists the kinds an event may carry.
var ChangeKinds = []ChangeKind{Deploy, Rollback, Job, Failover, Flag, Config, Migration, Maintenance}

// Phase is where in its life a change is.
type Phase string

const (
	Started  Phase = "started"
	Finished Phase = "finished"
	Aborted  Phase = "aborted"
)

// Change is one phase of one change; events of the same ID belong together.
type Change struct {
	Time       time.Time
	ID         string
	Kind       ChangeKind
	Phase      Phase
	Target     string // a service or a resource, "" if unknown
	Title      string
	Actor      string
	URL        string
	Dose       float64 // 0–1: how much of the target it touches; 0 is unknown
	Attributes Attributes
}

// Alert is one alert of another system, in Alertmanager's words.
type Alert struct {
	Time         time.Time // startsAt, or endsAt once resolved
	Fingerprint  string
	Status       string // firing or resolved
	Labels       Attributes
	Annotations  Attributes
	StartsAt     time.Time
	EndsAt       time.Time
	GeneratorURL string
	Receiver     string
}

func (e *Request) At() time.Time { return e.Time }
func (e *Gauge) At() time.Time   { return e.Time }
func (e *Ticket) At() time.Time  { return e.Time }
func (e *Change) At() time.Time  { return e.Time }
func (e *Alert) At() time.Time   { return e.Time }

func (*Request) Stream() Stream { return Requests }
func (*Gauge) Stream() Stream   { return Gauges }
func (*Ticket) Stream() Stream  { return Tickets }
func (*Change) Stream() Stream  { return Changes }
func (*Alert) Stream() Stream   { return Alerts }

var (
	_ Event = (*Request)(nil)
	_ Event = (*Gauge)(nil)
	_ Event = (*Ticket)(nil)
	_ Event = (*Change)(nil)
	_ Event = (*Alert)(nil)
)
