package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// parseFunc reads one JSON object that another program wrote. at is the record's timestamp. It calls emit for each event
// and refuse for each part that is none; unknown fields are never a reason to refuse, because senders gain them with
// every release.
type parseFunc func(raw []byte, at time.Time, emit func(signal.Event), refuse func(error))

// foreign makes a decoder of such objects. Like native events they come one a record, in an array or one a line, and
// their texts and attributes are bounded in the same way.
func foreign(p *pipeline.Pipeline, parse parseFunc) ingest.Decoder {
	d := newJSON(p).(*jsonDecoder)
	d.parse = parse
	return d
}

// one makes a parseFunc of a function that gives one event or says why there is none.
func one[E signal.Event](read func(raw []byte, at time.Time) (E, error)) parseFunc {
	return func(raw []byte, at time.Time, emit func(signal.Event), refuse func(error)) {
		e, err := read(raw, at)
		if err != nil {
			refuse(err)
			return
		}
		emit(e)
	}
}

func missing(field string) error {
	return &signaljson.Error{Reason: signaljson.Missing, Field: field, Msg: "is required"}
}

func invalid(field, format string, args ...any) error {
	return &signaljson.Error{Reason: signaljson.Invalid, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// unsupported is for what is well-formed and means nothing here.
func unsupported(format string, args ...any) error {
	return &signaljson.Error{Reason: signaljson.Reason(ingest.ReasonUnsupported), Msg: fmt.Sprintf(format, args...)}
}

// fill reads an object into a structure and names the field that cannot be read.
func fill(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	var wrong *json.UnmarshalTypeError
	var own *signaljson.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &wrong):
		return invalid(wrong.Field, "a JSON %s is no value for it", wrong.Value)
	}
	return &signaljson.Error{Reason: signaljson.Malformed, Msg: err.Error()}
}

// isObject tells whether an optional field holds an object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// moment is a time as programs write it: RFC 3339, Unix seconds with or without a fraction, or Unix milliseconds. Absent,
// null and empty are the zero time.
type moment struct{ time.Time }

// UnmarshalJSON reads either form.
func (m *moment) UnmarshalJSON(b []byte) error {
	var s scalar
	if err := s.UnmarshalJSON(b); err != nil {
		return err
	}
	if s.text == "" {
		return nil
	}
	if s.quoted {
		// Zendesk's and CDEvents' senders leave the zone out at times, and mean UTC.
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 UTC"} {
			if t, err := time.Parse(layout, s.text); err == nil {
				m.Time = t.UTC()
				return nil
			}
		}
		return invalid("", "%q is not a time of RFC 3339", cut(s.text, 40))
	}
	f, err := strconv.ParseFloat(s.text, 64)
	if err != nil || f < 0 || f > 1<<53 {
		return invalid("", "%s is not a Unix time", cut(s.text, 40))
	}
	if f > 1<<33 { // as seconds it would be after the year 2242
		m.Time = time.UnixMilli(int64(f)).UTC()
		return nil
	}
	whole, part := math.Modf(f)
	m.Time = time.Unix(int64(whole), int64(math.Round(part*1e3))*1e6).UTC()
	return nil
}

// firstTime is the first that is not zero.
func firstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// fingerprint names something by its content, where its sender gives no id that is the same in every delivery.
func fingerprint(parts ...string) string {
	return fmt.Sprintf("%016x", xxhash.Sum64String(strings.Join(parts, "\x00")))
}

// kindByWords tells from a title what kind of change it is.
func kindByWords(text string, otherwise signal.ChangeKind) signal.ChangeKind {
	text = strings.ToLower(text)
	for _, k := range changeWords {
		for _, w := range k.words {
			if strings.Contains(text, w) {
				return k.kind
			}
		}
	}
	return otherwise
}

// changeWords are in order: a rollback of a release is a rollback.
var changeWords = []struct {
	kind  signal.ChangeKind
	words []string
}{
	{signal.Rollback, []string{"rollback", "roll back", "roll-back", "rolled back", "revert"}},
	{signal.Failover, []string{"failover", "fail over", "failed over", "switchover"}},
	{signal.Migration, []string{"migrat"}},
	{signal.Flag, []string{"feature flag", "feature-flag", "flag "}},
	{signal.Maintenance, []string{"maintenance"}},
	{signal.Deploy, []string{"deploy", "release", "rollout", "roll out", "publish"}},
	{signal.Config, []string{"config"}},
}

// plainText takes the mark-up off a text of a help desk's editor, so that words and masks find it.
func plainText(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	for s != "" {
		before, rest, open := strings.Cut(s, "<")
		b.WriteString(before)
		if !open {
			break
		}
		if rest == "" || !strings.ContainsAny(rest[:1], "/!abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			b.WriteByte('<') // a sign, no tag
			s = rest
			continue
		}
		tag, after, closed := strings.Cut(rest, ">")
		if !closed { // nor is any that follows
			b.WriteString("<" + rest)
			break
		}
		s = after
		name := strings.ToLower(strings.TrimLeft(tag, "/"))
		if name, _, _ = strings.Cut(name, " "); !inline[name] {
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(html.UnescapeString(b.String())), " ")
}

// inline are the tags that stand within words.
var inline = map[string]bool{"a": true, "b": true, "code": true, "em": true, "i": true, "span": true, "strong": true, "u": true}
