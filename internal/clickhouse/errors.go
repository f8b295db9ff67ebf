package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// Reason says in one word why a request failed; it is also the metric label.
type Reason string

const (
	ReasonUnreachable Reason = "unreachable" // no connection, or it broke
	ReasonTimeout     Reason = "timeout"
	ReasonCanceled    Reason = "canceled"   // by the caller
	ReasonOverloaded  Reason = "overloaded" // too many parts or queries, out of memory
	ReasonDisk        Reason = "disk"
	ReasonReadOnly    Reason = "read_only"
	ReasonQuorum      Reason = "quorum"
	ReasonAuth        Reason = "auth"
	ReasonSchema      Reason = "schema" // a table, column or type is not as expected: not migrated, or migrated further
	ReasonTooLarge    Reason = "too_large"
	ReasonData        Reason = "data"
	ReasonServer      Reason = "server" // any other exception of the engine
)

// Reasons lists the closed set.
var Reasons = []Reason{
	ReasonUnreachable, ReasonTimeout, ReasonCanceled, ReasonOverloaded, ReasonDisk, ReasonReadOnly, ReasonQuorum, ReasonAuth, ReasonSchema,
	ReasonTooLarge, ReasonData, ReasonServer,
}

// Error is how every failure of this package reaches its caller. An insert that failed may be stored all the same:
// repeat it under the same token, never under another.
type Error struct {
	Op     string // action and object
	Reason Reason
	Code   int32 // ClickHouse's exception code, 0 where the engine did not answer
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Op, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Retry tells whether the same request can succeed later without anybody changing something.
func (e *Error) Retry() bool {
	switch e.Reason {
	case ReasonCanceled, ReasonAuth, ReasonSchema, ReasonTooLarge, ReasonData:
		return false
	case ReasonUnreachable, ReasonTimeout, ReasonOverloaded, ReasonDisk, ReasonReadOnly, ReasonQuorum, ReasonServer:
		return true
	}
	return true
}

// Retryable tells whether err is worth a repetition; errors that are not of this package are not.
func Retryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Retry()
}

var reasonOfCode = map[int32]Reason{
	159: ReasonTimeout, 160: ReasonTimeout, 209: ReasonTimeout, 394: ReasonTimeout,
	210: ReasonUnreachable, 279: ReasonUnreachable, 999: ReasonUnreachable, 225: ReasonUnreachable, // 999: Keeper
	202: ReasonOverloaded, 241: ReasonOverloaded, 252: ReasonOverloaded, 203: ReasonOverloaded, 439: ReasonOverloaded, 745: ReasonOverloaded,
	243: ReasonDisk,
	242: ReasonReadOnly, 164: ReasonReadOnly,
	285: ReasonQuorum, 286: ReasonQuorum, 319: ReasonQuorum, 289: ReasonQuorum,
	192: ReasonAuth, 193: ReasonAuth, 194: ReasonAuth, 497: ReasonAuth, 516: ReasonAuth,
	10: ReasonSchema, 16: ReasonSchema, 46: ReasonSchema, 47: ReasonSchema, 60: ReasonSchema, 81: ReasonSchema, 115: ReasonSchema,
	62: ReasonSchema, 20: ReasonSchema,
	6: ReasonData, 27: ReasonData, 33: ReasonData, 41: ReasonData, 53: ReasonData, 70: ReasonData, 117: ReasonData,
	307: ReasonTooLarge, 396: ReasonTooLarge,
}

// fail wraps what the driver answered; nil stays nil, and what is classified already only gains the outer action.
func fail(op string, err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return &Error{Op: op, Reason: done.Reason, Code: done.Code, Err: err}
	}
	e := &Error{Op: op, Err: err, Reason: ReasonServer}
	var ex *ch.Exception
	var httpErr *ch.HTTPError
	var netErr net.Error
	switch {
	case errors.As(err, &ex):
		e.Code = ex.Code
		if r, ok := reasonOfCode[ex.Code]; ok {
			e.Reason = r
		}
	case errors.As(err, &httpErr):
		e.Reason = reasonOfStatus(httpErr.StatusCode)
	case errors.Is(err, context.Canceled):
		e.Reason = ReasonCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, ch.ErrAcquireConnTimeout):
		e.Reason = ReasonTimeout
	case errors.Is(err, ch.ErrBatchInvalid):
		e.Reason = ReasonData
	default:
		// The rest are broken connections in many shapes: EOF, resets, refused. A mistake of ours that ends up here is
		// retried, which a metric shows, and that is better than giving up on data for a network error of a new shape.
		e.Reason = ReasonUnreachable
	}
	var request *url.Error
	if errors.As(err, &request) { // its address holds the whole statement and says nothing
		e.Err = request.Err
	}
	return e
}

// reasonOfStatus judges an answer that is no exception of ClickHouse: a proxy's, or a front's before the engine.
func reasonOfStatus(status int) Reason {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ReasonAuth
	case http.StatusRequestEntityTooLarge:
		return ReasonTooLarge
	case http.StatusTooManyRequests:
		return ReasonOverloaded
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return ReasonTimeout
	}
	return ReasonUnreachable
}
