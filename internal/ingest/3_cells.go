package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest/mask"
	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Rough sizes of rows in memory, for the bound of a batch.
const (
	cellBytes  = 240
	keyBytes   = 128 // of a key that rows do not share
	restBytes  = 900
	pointBytes = 1800 // with what the store makes of it
	eventBytes = 300
	// maxSpareRests bounds what is kept of a batch with many failures.
	maxSpareRests = 4096
	// maxRecordBytes bounds the records that one batch reads, whatever becomes of them.
	maxRecordBytes = 256 << 20
	timeBytes      = 10 // with what lists have in reserve
	// maxTexts bounds a batch of texts: the store refuses a block of twice as much, for ever.
	maxTexts = 32 << 20
)

// cellID is what rows are known by in the store, too.
type cellID struct {
	bucket int64 // Unix seconds
	key    uint64
}

// batch gathers the rows of a range. What it gives is a function of the records, of readAt and of the watermark before.
type batch struct {
	stream    signal.Stream
	readAt    time.Time // the clock when it began, as the reservation names it
	watermark time.Time // before it
	until     int64     // the end of a reserved range that is replayed, else 0
	again     bool      // dead letters of it may be stored already
	masker    *mask.Masker
	maxRows   int
	maxBytes  int

	began  time.Time // monotonic
	linger time.Duration

	index       map[cellID]int
	places      places
	cells       []Cell
	spare       []*signal.Cell // of cells, used before
	rests       int            // in use
	points      []series.Point
	gauges      []signal.Gauge
	tickets     []signal.Ticket
	changes     []signal.Change
	alerts      []signal.Alert
	letters     []DeadLetter
	times       []int64     // event times, Unix milliseconds
	order       []cellOrder // of the cells, when they are sorted
	records     uint64
	rejected    uint64
	late        uint64
	missing     uint64 // offsets deleted before they were read
	firstRecord time.Time
	lastRecord  time.Time
	maxRecord   time.Time
	maxEvent    time.Time
	size        int // rough memory of the rows
	read        int // bytes of records

	values  uint64  // version of the dictionary that it is counted by
	delays  []int64 // by which events of its records were late, milliseconds
	replays bool    // events are as old as they are

	number     uint32 // of the partition's batches, so that places know whose cells they remember
	late0      int64  // the watermark in Unix nanoseconds
	maxCounted int64  // the largest event time of those counted by shape

	onEvent  func(signal.Event)
	onShapes func([]Counted)
	onLetter func(DeadLetter)
}

// newBatch begins a batch at the partition's end.
func (p *partition) newBatch(readAt, watermark time.Time) *batch {
	b := p.spare
	if b == nil {
		b = &batch{index: map[cellID]int{}, places: make(places, 64)}
		b.onEvent, b.onShapes, b.onLetter = b.event, b.shapes, b.letter
	}
	p.spare = nil
	p.batches++
	clear(b.index)
	*b = batch{stream: p.src.Pipeline.Stream, readAt: readAt.UTC().Truncate(time.Millisecond), watermark: watermark, masker: p.src.Masker,
		maxRows: p.loop.cfg.MaxRows, maxBytes: p.maxBytes, began: time.Now(), linger: p.loop.lingerNow(),
		index: b.index, places: b.places, times: b.times[:0], delays: b.delays[:0], replays: p.src.Pipeline.MaxAge.Std() > replayAge, order: b.order, cells: b.cells[:0], spare: b.spare,
		number: p.batches, onEvent: b.onEvent, onShapes: b.onShapes, onLetter: b.onLetter}
	b.late0 = nanosOf(watermark)
	return b
}

// full tells whether another record might be too much.
func (b *batch) full() bool {
	// The marker is a row, too.
	return b.rows() >= b.maxRows-MaxEvents || len(b.letters) > b.maxRows-MaxEvents || b.size+timeBytes*len(b.times) > b.maxBytes || b.read > maxRecordBytes
}

func (b *batch) rows() int {
	return len(b.cells) + len(b.points) + len(b.gauges) + len(b.tickets) + len(b.changes) + len(b.alerts)
}

// record notes a record before it is decoded.
func (b *batch) record(rec Record) {
	b.records++
	b.read += len(rec.Value) + len(rec.Key)
	b.lastRecord = rec.Time
	// Timestamps that are not believed must not choose the storage partition, nor lift the watermark.
	if rec.Time.UnixMilli() <= 0 || rec.Time.After(b.readAt.Add(clockSlack)) {
		return
	}
	if b.firstRecord.IsZero() {
		b.firstRecord = rec.Time
	}
	if rec.Time.After(b.maxRecord) {
		b.maxRecord = rec.Time
	}
}

// event counts one event. It copies: decoders use theirs again.
func (b *batch) event(e signal.Event) {
	t := e.At()
	b.times = append(b.times, t.UnixMilli())
	if t.Before(b.watermark) {
		b.late++
	}
	if t.After(b.maxEvent) {
		b.maxEvent = t
	}
	switch e := e.(type) {
	case *signal.Request:
		b.request(e)
	case *series.Point:
		b.points = append(b.points, *e)
		b.size += pointBytes + lengths(e.Path.Service, e.Path.Operation, e.Error, e.Account, string(e.Attributes))
	case *signal.Gauge:
		b.gauges = append(b.gauges, *e)
		b.size += eventBytes + lengths(e.Resource, e.Metric, e.Unit, string(e.Attributes))
	case *signal.Ticket:
		b.tickets = append(b.tickets, *e)
		b.size += eventBytes + lengths(e.ID, e.Subject, e.Text, e.Account, e.Area, e.Service, e.Language, e.Source, e.Severity, e.URL, e.Status) + lengths(e.Tags...)
	case *signal.Change:
		b.changes = append(b.changes, *e)
		b.size += eventBytes + lengths(e.ID, e.Target, e.Title, e.Actor, e.URL, string(e.Attributes))
	case *signal.Alert:
		b.alerts = append(b.alerts, *e)
		b.size += eventBytes + lengths(e.Fingerprint, e.GeneratorURL, e.Receiver, string(e.Labels), string(e.Annotations))
	}
}

func lengths(texts ...string) (n int) {
	for _, s := range texts {
		n += len(s)
	}
	return n
}

const bucketSeconds = int64(signal.BucketSize / time.Second)

func (b *batch) request(r *signal.Request) {
	s := r.Time.Unix()
	key := signal.Key{Path: r.Path, Attributes: r.Attributes}
	c := &b.cells[b.cell(s-((s%bucketSeconds)+bucketSeconds)%bucketSeconds, key.ID(), nil, &key)]
	if r.Outcome == signal.Failure || !c.add(r.Outcome, max(r.Count, 1), r.Attempt > 1, r.Estimated, latencyBucket(r.Latency)) {
		b.rest(c).Count(r)
	}
}

// cell is the place of the cell of a key in a bucket. The key is shared, or words is what to make it of.
func (b *batch) cell(bucket int64, id uint64, key *Key, words *signal.Key) int {
	k := cellID{bucket, id}
	i, ok := b.index[k]
	if !ok {
		if key == nil {
			key = &Key{Key: *words, ID: id}
			b.size += keyBytes + len(key.Service) + len(key.Operation) + len(key.Attributes)
		}
		i = len(b.cells)
		b.index[k] = i
		b.cells = append(b.cells, Cell{key: key, bucket: bucket})
		b.size += cellBytes
	}
	return i
}

// rest is the part of a cell that counts what its small counters cannot.
func (b *batch) rest(c *Cell) *signal.Cell {
	if c.rest == nil {
		if b.rests == len(b.spare) {
			b.spare = append(b.spare, &signal.Cell{})
		}
		c.rest = b.spare[b.rests]
		*c.rest = signal.Cell{Accounts: c.rest.Accounts[:0], Samples: c.rest.Samples[:0]}
		b.rests++
		b.size += restBytes
	}
	return c.rest
}

func (b *batch) letter(d DeadLetter) {
	b.letters = append(b.letters, d)
	b.size += eventBytes + len(d.Payload) + len(d.Detail)
}

// gap notes offsets that are gone.
func (b *batch) gap(from, to int64, text string) {
	b.missing += uint64(to - from)
	b.rejected++
	b.letter(DeadLetter{Offset: from, Time: b.readAt, Reason: ReasonGap, Detail: text})
}

// finish gives the batch of a range. The rows are used again once the batch is stored.
func (b *batch) finish(r Range, prior time.Time, revision string, clock time.Time) *Batch {
	if b.maxCounted > 0 {
		if t := time.Unix(0, b.maxCounted).UTC(); t.After(b.maxEvent) {
			b.maxEvent = t
		}
	}
	b.maskSamples()
	b.sortCells()
	slices.SortStableFunc(b.points, func(x, y series.Point) int { return cmp.Or(x.Time.Compare(y.Time), cmp.Compare(x.Series, y.Series)) })
	slices.SortStableFunc(b.gauges, func(x, y signal.Gauge) int {
		return cmp.Or(x.Time.Compare(y.Time), cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Metric, y.Metric))
	})
	slices.SortStableFunc(b.tickets, func(x, y signal.Ticket) int { return x.Time.Compare(y.Time) })
	slices.SortStableFunc(b.changes, func(x, y signal.Change) int { return x.Time.Compare(y.Time) })
	slices.SortStableFunc(b.alerts, func(x, y signal.Alert) int { return x.Time.Compare(y.Time) })
	out := &Batch{Range: r, Stream: b.stream, Time: b.firstRecord, Cells: b.cells, Points: b.points, Gauges: b.gauges, Tickets: b.tickets, Changes: b.changes,
		Alerts: b.alerts, DeadLetters: b.letters}
	if out.Time.IsZero() {
		out.Time = b.readAt
	}
	out.Marker = Marker{Rows: uint64(b.rows()), Records: b.records, Events: uint64(len(b.times)), Rejected: b.rejected, Late: b.late, Gap: b.missing,
		MaxEventTime: b.maxEvent, Watermark: b.newWatermark(), RecordTime: b.lastRecord, Revision: revision, Clock: clock}
	if b.records == 0 {
		out.Marker.RecordTime = prior
	}
	return out
}

// release lets go of the rows, but keeps the memory that serves again.
func (b *batch) release() {
	for _, c := range b.spare[:b.rests] {
		clear(c.Samples) // their texts
	}
	b.spare = b.spare[:min(len(b.spare), maxSpareRests)]
	b.points, b.gauges, b.tickets, b.changes, b.alerts, b.letters = nil, nil, nil, nil, nil, nil
}

// maskSamples takes secrets out of the error texts of samples. Few texts repeat often.
func (b *batch) maskSamples() {
	known := map[string]string{}
	masked := func(text *string) {
		if *text == "" {
			return
		}
		m, ok := known[*text]
		if !ok {
			m = b.masker.String(*text)
			known[*text] = m
		}
		*text = m
	}
	for _, c := range b.spare[:b.rests] {
		for j := range c.Samples {
			masked(&c.Samples[j].Error)
		}
	}
	for i := range b.points { // those of failures become samples in the store
		masked(&b.points[i].Error)
	}
}
