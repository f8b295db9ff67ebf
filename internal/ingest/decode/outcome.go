package decode

import (
	"strconv"
	"strings"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// ending is what a span says about how it ended.
type ending struct {
	http      int    // response status, 0 if none
	grpc      string // status as number or name, "" if none
	errorType string
	failed    bool // span status ERROR
}

// status is the protocol status as text, for samples and rules.
func (e *ending) status() string {
	switch {
	case e.grpc != "":
		return grpcName(e.grpc) // HTTP's is 200 then, whatever happened
	case e.http != 0:
		return httpText(e.http)
	}
	return ""
}

// outcome judges from the answering service's side: 4xx and its like are the caller's fault, refusals for protection
// are neither's, the rest of the errors are the service's.
func (e *ending) outcome() signal.Outcome {
	if e.http != 0 {
		switch o := httpOutcome(e.http); {
		case o == signal.Success && e.grpc != "" && grpcCode(e.grpc) != 0:
			// gRPC says 200 whatever happens.
		case o == signal.Success && (e.failed || e.errorType != ""):
			return e.byError() // the answer broke off after its header
		default:
			return o
		}
	}
	if e.grpc != "" {
		return grpcOutcome(grpcCode(e.grpc))
	}
	if e.failed || e.errorType != "" {
		return e.byError()
	}
	return signal.Success
}

func (e *ending) byError() signal.Outcome {
	if n, err := strconv.Atoi(e.errorType); err == nil && n >= 400 && n < 600 {
		return httpOutcome(n)
	}
	if code := grpcCode(e.errorType); code > 0 && code != 2 {
		return grpcOutcome(code)
	}
	switch strings.ToLower(e.errorType) {
	case "context canceled", "context.canceled", "canceled", "cancelled", "client_disconnected", "client closed request", "econnaborted", "aborterror":
		return signal.Rejected // the caller went away
	}
	return signal.Failure
}

func httpOutcome(status int) signal.Outcome {
	switch {
	case status == 429:
		return signal.Throttled
	case status >= 500:
		return signal.Failure
	case status >= 400:
		return signal.Rejected // 499 too: the caller went away
	}
	return signal.Success
}

func httpText(status int) string {
	if status >= 100 && status < 600 {
		return httpTexts[status-100]
	}
	return strconv.Itoa(status)
}

var httpTexts = func() (t [500]string) {
	for i := range t {
		t[i] = strconv.Itoa(i + 100)
	}
	return t
}()

// grpcNames are the names of gRPC's status codes by number.
var grpcNames = [...]string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL",
	"UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}

// grpcCode reads a number or a name in any case; -1 if it is neither.
func grpcCode(s string) int {
	if s == "" {
		return -1
	}
	if n, err := strconv.Atoi(s); err == nil {
		if n >= 0 && n < len(grpcNames) {
			return n
		}
		return -1
	}
	for i, name := range grpcNames {
		if strings.EqualFold(s, name) || i == 1 && strings.EqualFold(s, "canceled") {
			return i
		}
	}
	return -1
}

func grpcName(s string) string {
	if n := grpcCode(s); n >= 0 {
		return grpcNames[n]
	}
	return s
}

// grpcOutcome follows the convention of which codes are a server's errors; a code that nobody knows is one, too.
func grpcOutcome(code int) signal.Outcome {
	switch code {
	case 0:
		return signal.Success
	case 8:
		return signal.Throttled
	case 1, 3, 5, 6, 7, 9, 10, 11, 16:
		return signal.Rejected
	}
	return signal.Failure
}

// overrule applies the pipeline's own rules.
func overrule(rules []pipeline.OutcomeRule, r *signal.Request) {
	for i := range rules {
		o := &rules[i]
		if o.Service.Match(r.Path.Service) && o.Operation.Match(r.Path.Operation) && o.Status.Match(r.Status) && o.Error.Match(r.Error) {
			r.Outcome = o.Outcome
			return
		}
	}
}
