package ingest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest/mask"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Bounds of what one record may become, so that a batch stays below its own.
const (
	// MaxEvents is the most events that one record may hold; what follows is one dead letter.
	MaxEvents = 50_000
	// MaxDeadLetters is the most dead letters of one record that are told one by one.
	MaxDeadLetters = 16
	// MaxPayload bounds the payload of a dead letter.
	MaxPayload = 64 << 10
	// MaxText bounds the text of a ticket.
	MaxText = 64 << 10
	// clockSlack is how far ahead of the reading clock a record's own timestamp may be. It is wide, because a wrong clock
	// here must not turn all records away; it is there because one record of the year 2106 would close every bucket.
	clockSlack = 24 * time.Hour
)

// Reader is the stage that decodes: size and bounds before and after the decoder, masks on text. What it gives is a
// function of the record, the pipeline and readAt. It is used by one goroutine.
type Reader struct {
	p      *pipeline.Pipeline
	dec    Decoder
	shaped ShapedDecoder // dec, if it is one
	masker *mask.Masker

	// State of the record that is being read, kept here so that no closure is made for each.
	rec      Record
	at       time.Time // the record's timestamp, or readAt where it has none
	min, max time.Time
	emit     func(signal.Event)
	reject   func(DeadLetter)
	events   int
	rejected int
	unlisted DeadLetter // the first of those not told one by one
	onEvent  func(signal.Event)
	onReject func(DeadLetter)

	count       func([]Counted)
	first, last int64 // min and max in Unix nanoseconds, where requests are counted by shape
	onShapes    func([]Counted)
}

// Reader makes the stage for one partition.
func (s Source) Reader() *Reader {
	r := &Reader{p: s.Pipeline, dec: s.NewDecoder(), masker: s.Masker}
	r.shaped, _ = r.dec.(ShapedDecoder)
	r.onEvent, r.onReject, r.onShapes = r.event, r.rejection, r.shapes
	return r
}

// Read decodes one record. readAt is the clock when the batch began, as its reservation names it.
func (r *Reader) Read(rec Record, readAt time.Time, emit func(signal.Event), reject func(DeadLetter)) {
	r.ReadShaped(rec, readAt, nil, emit, reject)
}

// ReadShaped is Read, but that requests may go to count instead of emit, if the decoder knows their shapes.
func (r *Reader) ReadShaped(rec Record, readAt time.Time, count func([]Counted), emit func(signal.Event), reject func(DeadLetter)) {
	r.rec, r.emit, r.reject, r.events, r.rejected, r.at = rec, emit, reject, 0, 0, rec.Time
	if rec.Time.UnixMilli() <= 0 {
		r.at = readAt // old producers may leave the timestamp out
	}
	limit := readAt.Add(max(clockSlack, r.p.MaxAhead.Std()))
	r.min, r.max = r.at.Add(-r.p.MaxAge.Std()), r.at.Add(r.p.MaxAhead.Std())
	switch {
	case len(rec.Value) == 0:
		r.rejection(DeadLetter{Reason: ReasonEmpty, Detail: "the record has no value"})
	case int64(len(rec.Value)) > int64(r.p.MaxRecord):
		r.rejection(DeadLetter{Reason: ReasonTooLarge, Detail: fmt.Sprintf("%d bytes, max_record is %s", len(rec.Value), r.p.MaxRecord)})
	case r.at.After(limit):
		r.rejection(DeadLetter{Reason: ReasonFuture, Detail: "the record's own timestamp is " + stamp(r.at)})
	default:
		r.decode(rec, count)
	}
	if over := r.rejected - MaxDeadLetters; over > 0 {
		r.unlisted.Detail = fmt.Sprintf("%s (and %d more of this record)", r.unlisted.Detail, over-1)
		r.letter(r.unlisted)
	}
	r.rec, r.emit, r.reject, r.unlisted = Record{}, nil, nil, DeadLetter{}
}

func (r *Reader) decode(rec Record, count func([]Counted)) {
	if count != nil && r.shaped != nil {
		var ok bool
		if r.first, r.last, ok = nanosBetween(r.min, r.max); ok {
			r.count = count
			r.shaped.DecodeShaped(rec, r.onShapes, r.onEvent, r.onReject)
			r.count = nil
			return
		}
	}
	r.dec.Decode(rec, r.onEvent, r.onReject)
}

// shapes is event for requests that go by shape.
func (r *Reader) shapes(list []Counted) {
	if r.events+len(list) <= MaxEvents && r.timely(list) {
		r.events += len(list)
		r.count(list)
		return
	}
	for i := range list {
		one := list[i : i+1]
		if r.events >= MaxEvents || !r.timely(one) {
			r.event(one[0].Shape.At(one[0].End, one[0].Latency)) // which says what is wrong with it
			continue
		}
		r.events++
		r.count(one)
	}
}

func (r *Reader) timely(list []Counted) bool {
	for i := range list {
		if end := list[i].End; end < r.first || end > r.last {
			return false
		}
	}
	return true
}

// Rejected is the number of parts of the last record that were not counted, told one by one or not.
func (r *Reader) Rejected() int { return r.rejected }

// event checks the event's time and hands it on.
func (r *Reader) event(e signal.Event) {
	if r.events++; r.events > MaxEvents {
		if r.events == MaxEvents+1 {
			r.rejection(DeadLetter{Reason: ReasonTooLarge, Detail: fmt.Sprintf("more than %d events in one record, the others are not counted", MaxEvents)})
		}
		return
	}
	t := e.At()
	switch {
	case t.Before(r.min):
		hint := ""
		if t.Year() == 1970 && r.at.Year() > 1971 {
			hint = "; seconds where milliseconds belong?"
		}
		r.rejection(DeadLetter{Reason: ReasonTooOld, Detail: fmt.Sprintf("event time %s, record %s, max_age %s%s", stamp(t), stamp(r.at), r.p.MaxAge, hint)})
		return
	case t.After(r.max):
		r.rejection(DeadLetter{Reason: ReasonFuture, Detail: fmt.Sprintf("event time %s, record %s, max_ahead %s", stamp(t), stamp(r.at), r.p.MaxAhead)})
		return
	}
	if ticket, ok := e.(*signal.Ticket); ok {
		ticket.Subject = mask.Cut(r.masker.String(mask.Cut(ticket.Subject, 4<<10)), 1<<10)
		ticket.Text = string(r.masker.Payload([]byte(ticket.Text), MaxText))
	}
	r.emit(e)
}

func (r *Reader) rejection(d DeadLetter) {
	r.rejected++
	if r.rejected > MaxDeadLetters {
		if r.rejected == MaxDeadLetters+1 {
			d.Payload = bytes.Clone(d.Payload) // it may be the decoder's scratch memory
			r.unlisted = d
		}
		return
	}
	r.letter(d)
}

// letter completes a dead letter. Only the first of a record carries the whole record.
func (r *Reader) letter(d DeadLetter) {
	d.Offset, d.Time = r.rec.Offset, r.at
	switch {
	case d.Payload != nil:
		d.Size = len(d.Payload)
	case r.rejected == 1:
		d.Payload, d.Size = r.rec.Value, len(r.rec.Value)
	default:
		d.Size = len(r.rec.Value)
	}
	d.Payload = r.masker.Payload(d.Payload, MaxPayload)
	d.Detail = mask.Cut(r.masker.String(d.Detail), 1<<10)
	r.reject(d)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }

// finished gives the memory of the fetched records back when all of them are decoded: nothing keeps a part of them.
func (p *partition) finished() {
	if len(p.records) > 0 {
		return
	}
	if p.records = nil; p.release != nil {
		p.release()
		p.release = nil
	}
}

// decode reads the fetched records into the batch, as many as it takes.
func (p *partition) decode(context.Context) error {
	if p.batch == nil {
		if len(p.records) == 0 {
			p.finished()
			p.next = p.fetchNext // ends of transactions and the like: they belong to the next batch's range
			return nil
		}
		p.batch = p.newBatch(p.loop.now(), p.watermark)
	}
	b := p.batch
	for len(p.records) > 0 {
		rec := p.records[0]
		if b.until != 0 && rec.Offset >= b.until {
			break
		}
		if b.until == 0 && b.full() {
			p.next = rec.Offset
			return nil
		}
		p.records = p.records[1:]
		p.loop.clock.Observe(rec.Time)
		b.record(rec)
		counted := len(b.times)
		p.reader.ReadShaped(rec, b.readAt, b.onShapes, b.onEvent, b.onLetter)
		b.rejected += uint64(p.reader.Rejected())
		b.delay(rec.Time, counted)
	}
	p.finished()
	switch {
	case b.until == 0:
		p.next = p.fetchNext
	case p.fetchNext >= b.until:
		// Records behind the range are fetched again: they belong to the next batch.
		p.next, p.fetchNext, p.records = b.until, b.until, nil
	default:
		p.next = p.fetchNext
	}
	return nil
}
