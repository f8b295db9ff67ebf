package door

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// check looks at a body before it is accepted. skip tells that it is right and holds nothing.
type check func(body []byte) (skip bool, problem string)

func anything(body []byte) (bool, string) {
	if len(bytes.TrimSpace(body)) == 0 {
		return false, "the body is empty"
	}
	return false, ""
}

// postedAlerts is the form of Alertmanager's interface, whose clients expect mistakes to be refused at once.
func postedAlerts(body []byte) (bool, string) {
	var list []struct {
		Labels map[string]string `json:"labels"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return false, "an array of alerts is needed: " + err.Error()
	}
	for i, a := range list {
		if len(a.Labels) == 0 {
			return false, "alert " + strconv.Itoa(i+1) + " has no labels"
		}
	}
	return len(list) == 0, ""
}

// serve takes one body. The order matters: what costs little is checked first, and nobody learns anything of a body
// before it is known who sent it.
func (d *Door) serve(w http.ResponseWriter, r *http.Request, s *sender, check check, accepted int) {
	count := func(outcome string) { d.o.Metrics.requests.WithLabelValues(s.name, outcome).Inc() }
	select {
	case d.slots <- struct{}{}:
		d.o.Metrics.serving.Inc()
		defer func() { <-d.slots; d.o.Metrics.serving.Dec() }()
	default:
		count(outcomeBusy)
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "too many requests at a time: send it again")
		return
	}
	// A sender that trickles must not hold its place for longer than others wait.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.o.Config.Timeout.Std()))
	ctx, cancel := context.WithTimeout(r.Context(), d.o.Config.Timeout.Std())
	defer cancel()
	body, status, problem := d.read(w, r, s)
	if problem == "" {
		var skip bool
		if skip, problem = check(body); problem != "" {
			status = http.StatusBadRequest
		} else if skip {
			count(outcomeAccepted)
			w.WriteHeader(accepted)
			return
		}
	}
	switch {
	case problem == "":
	case status == http.StatusUnauthorized:
		count(outcomeDenied)
		w.Header().Set("WWW-Authenticate", `Bearer realm="tocsin"`)
		fail(w, status, problem)
		return
	case status == http.StatusRequestEntityTooLarge:
		count(outcomeTooLarge)
		fail(w, status, problem)
		return
	case status == http.StatusServiceUnavailable:
		count(outcomeUnavailable)
		fail(w, status, problem)
		return
	default:
		count(outcomeBad)
		fail(w, status, problem)
		return
	}
	switch err := d.o.Producer.Produce(ctx, s.topic, body); {
	case err == nil:
		count(outcomeAccepted)
		d.o.Metrics.bytes.WithLabelValues(s.name).Add(float64(len(body)))
		answer(w, accepted, map[string]string{"status": "accepted", "pipeline": s.name})
	case errors.Is(err, ErrTooLarge):
		count(outcomeTooLarge)
		fail(w, http.StatusRequestEntityTooLarge, "the topic takes no record of this size")
	default:
		count(outcomeUnavailable)
		d.o.Logger.Warn("a record was not accepted", "pipeline", s.name, "topic", s.topic, "err", err)
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, "Kafka has not confirmed the record: send it again")
	}
}

// read gives the body, or the status and the reason of a refusal.
func (d *Door) read(w http.ResponseWriter, r *http.Request, s *sender) (body []byte, status int, problem string) {
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil, http.StatusForbidden, "a browser's page may not send here"
	}
	if form, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); form == "application/x-www-form-urlencoded" || form == "multipart/form-data" {
		return nil, http.StatusUnsupportedMediaType, "the body is a form: let the sender send JSON (application/json)"
	}
	allowed := s.open
	if len(s.tokens) > 0 {
		tokens, err := secrets(s.tokens)
		if err != nil {
			d.o.Logger.Error("tokens cannot be read", "pipeline", s.name, "err", err)
			return nil, http.StatusServiceUnavailable, "the tokens cannot be read: Tocsin's log says why"
		}
		allowed = knows(tokens, r.Header.Get("Authorization"))
	}
	if !allowed && s.scheme == "" {
		return nil, http.StatusUnauthorized, "a bearer token is needed that is known here"
	}
	tooLarge := "the body is larger than " + strconv.FormatInt(s.limit, 10) + " bytes, the pipeline's max_record"
	if r.ContentLength > s.limit {
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	case err != nil:
		return nil, http.StatusBadRequest, "the body did not arrive in full"
	}
	if !allowed {
		keys, err := secrets(s.secrets)
		if err != nil {
			d.o.Logger.Error("secrets cannot be read", "pipeline", s.name, "err", err)
			return nil, http.StatusServiceUnavailable, "the secrets cannot be read: Tocsin's log says why"
		}
		if !s.scheme.signed(keys, r.Header, body, d.o.Now()) {
			return nil, http.StatusUnauthorized, "the signature (" + string(s.scheme) + ") is missing, wrong or too old"
		}
	}
	return unpack(r.Header.Get("Content-Encoding"), body, s.limit, tooLarge)
}

// unpack undoes a compression; the limit holds for what comes out.
func unpack(encoding string, body []byte, limit int64, tooLarge string) ([]byte, int, string) {
	switch encoding {
	case "", "identity":
		return body, 0, ""
	case "gzip":
	default:
		return nil, http.StatusUnsupportedMediaType, "the content encoding must be gzip or none"
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, http.StatusBadRequest, "the body is not gzip"
	}
	plain, err := io.ReadAll(io.LimitReader(z, limit+1))
	switch {
	case err != nil:
		return nil, http.StatusBadRequest, "the body is not gzip"
	case int64(len(plain)) > limit:
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	return plain, 0, ""
}

func fail(w http.ResponseWriter, status int, problem string) {
	answer(w, status, map[string]string{"status": "error", "error": problem})
}

func answer(w http.ResponseWriter, status int, v map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the sender is gone if it fails
}
