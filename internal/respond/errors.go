package respond

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Class says what to do after a failed delivery.
type Class uint8

const (
	// Retry may succeed later.
	Retry Class = iota
	// RateLimited asks to come back after a stated time.
	RateLimited
	// Permanent will not succeed as it is: repeating it soon is useless, a person has to mend something.
	Permanent
)

// Reason is why a delivery failed, from a closed set, and the label of the metric.
type Reason string

const (
	ReasonNetwork     Reason = "network"
	ReasonTimeout     Reason = "timeout"
	ReasonServer      Reason = "server_error"
	ReasonRateLimited Reason = "rate_limited"
	ReasonAuth        Reason = "auth_error"
	ReasonNotFound    Reason = "not_found" // no such channel, page or URL
	ReasonRefused     Reason = "refused"   // the provider does not accept what we sent
	ReasonTooLarge    Reason = "too_large"
	ReasonInternal    Reason = "internal" // a mistake of ours
)

// Reasons is the closed set, for metrics.
var Reasons = []Reason{ReasonNetwork, ReasonTimeout, ReasonServer, ReasonRateLimited, ReasonAuth, ReasonNotFound,
	ReasonRefused, ReasonTooLarge, ReasonInternal}

// maxRetryAfter bounds what a provider may ask for, so that a wrong header does not silence us for a day.
const maxRetryAfter = time.Hour

// SendError is a failed delivery, classified once where it happened.
type SendError struct {
	Class   Class
	Reason  Reason
	After   time.Duration // with RateLimited, or where the provider said so
	Unknown bool          // it may have been applied
	Err     error
}

func (e *SendError) Error() string { return string(e.Reason) + ": " + e.Err.Error() }

func (e *SendError) Unwrap() error { return e.Err }

// Classify gives any error its class. Errors that name no class are our own mistakes, which may be gone after the
// next change of content, or those of the network.
func Classify(err error) *SendError {
	var se *SendError
	if errors.As(err, &se) {
		return se
	}
	var ne net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return &SendError{Class: Retry, Reason: ReasonTimeout, Unknown: true, Err: err}
	case errors.Is(err, context.Canceled), errors.As(err, &ne):
		return &SendError{Class: Retry, Reason: ReasonNetwork, Unknown: true, Err: err}
	}
	return &SendError{Class: Permanent, Reason: ReasonInternal, Unknown: true, Err: err}
}

// TransportError classifies a request that got no answer. The URL is left out of it: the URL of a webhook is a secret.
func TransportError(err error, secrets ...string) *SendError {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	se := &SendError{Class: Retry, Reason: ReasonNetwork, Unknown: true}
	var ne net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
		se.Reason = ReasonTimeout
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		se.Unknown = false // nothing was sent
	}
	se.Err = Scrub(fmt.Errorf("no answer: %w", err), secrets...)
	return se
}

// StatusError classifies an HTTP answer, nil for 2xx. The body is shortened and scrubbed.
func StatusError(code int, header http.Header, body string, secrets ...string) *SendError {
	if code >= 200 && code < 300 {
		return nil
	}
	if r := []rune(body); len(r) > 300 {
		body = string(r[:300]) + "…"
	}
	se := &SendError{Class: Permanent, Reason: ReasonRefused, Err: Scrub(fmt.Errorf("status %d: %s", code, strings.TrimSpace(body)), secrets...)}
	switch {
	case code == http.StatusTooManyRequests, code == 420: // Statuspage answers 420
		se.Class, se.Reason, se.After = RateLimited, ReasonRateLimited, RetryAfter(header, time.Now)
	case code == http.StatusRequestTimeout:
		se.Class, se.Reason, se.Unknown = Retry, ReasonTimeout, true
	case code >= 500:
		se.Class, se.Reason, se.Unknown, se.After = Retry, ReasonServer, true, RetryAfter(header, time.Now)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		se.Reason = ReasonAuth
	case code == http.StatusNotFound, code == http.StatusGone:
		se.Reason = ReasonNotFound
	case code == http.StatusRequestEntityTooLarge:
		se.Reason = ReasonTooLarge
	}
	return se
}

// RetryAfter reads the header, seconds or a date; 0 where there is none.
func RetryAfter(header http.Header, now func() time.Time) time.Duration {
	v := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return min(maxRetryAfter, time.Duration(s*float64(time.Second)))
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(maxRetryAfter, max(0, t.Sub(now())))
	}
	return 0
}

// scrubbed has an error's text without secrets. It does not unwrap: what it wraps would print them.
type scrubbed string

func (s scrubbed) Error() string { return string(s) }

// Scrub replaces secrets in an error's text, as they are and as they look inside a URL.
func Scrub(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			text = strings.ReplaceAll(text, form, "<secret>")
		}
	}
	return scrubbed(text)
}
