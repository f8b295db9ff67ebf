package ingest

// Reasons why a record, or one event of it, could not be counted. The set is closed: a reason is a column of
// dead_letters and the label of a metric.
const (
	ReasonMalformed   = "malformed"     // not the format at all, or cut off
	ReasonTooLarge    = "too_large"     // larger than max_record, or more events than a record may hold
	ReasonEmpty       = "empty"         // no value
	ReasonMissing     = "missing_field" // a required field is absent
	ReasonInvalid     = "invalid_value" // a field has a value that it cannot have
	ReasonTooOld      = "too_old"       // event time more than max_age before the record's timestamp
	ReasonFuture      = "future"        // event time more than max_ahead after the record's timestamp, or the timestamp itself
	ReasonUnsupported = "unsupported"   // well-formed, but of a kind that is not read here
	ReasonGap         = "gap"           // offsets that were deleted from the log before they were read
)

// Reasons is the closed set.
var Reasons = []string{ReasonMalformed, ReasonTooLarge, ReasonEmpty, ReasonMissing, ReasonInvalid, ReasonTooOld,
	ReasonFuture, ReasonUnsupported, ReasonGap}
