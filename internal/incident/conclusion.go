package incident

// Conclusion is one thing that a tick came to: a change of a finding, an event of an incident, or a warning. Replays of stored
// history are held to what is stored by its JSON.
type Conclusion struct {
	Tick    uint64      `json:"tick"`
	Finding *Transition `json:"finding,omitempty"`
	Event   *Event      `json:"event,omitempty"`
	Warning *Warning    `json:"warning,omitempty"`
}
