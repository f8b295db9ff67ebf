package clickhouse

import (
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestRewindIsAnotherReading(t *testing.T) {
	db := migrated(t)
	store := NewStore(db)
	if err := store.Insert(t.Context(), requests(10, 20, 5)); err != nil {
		t.Fatal(err)
	}
	r := Rewind{Stream: signal.Requests, Topic: "telemetry", Partition: 3, To: 12, By: "jane", Reason: "a wrong pipeline", At: at(0)}
	if err := store.Rewind(t.Context(), r); err == nil || !strings.Contains(err.Error(), "stop every daemon") {
		t.Fatalf("while it is read: %v", err)
	}
	// A minute later.
	for _, sql := range []string{
		"ALTER TABLE cells MODIFY COLUMN inserted_at DateTime('UTC') DEFAULT now()",
		"INSERT INTO cells SELECT * REPLACE (1 AS incarnation, now() - INTERVAL 1 MINUTE AS inserted_at) FROM cells",
		"DELETE FROM cells WHERE inserted_at > now() - INTERVAL 30 SECOND SETTINGS mutations_sync = 1",
		"ALTER TABLE cells MODIFY COLUMN inserted_at DateTime('UTC') MATERIALIZED now()",
	} {
		if err := db.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	r.To = 20
	if err := store.Rewind(t.Context(), r); err == nil || !strings.Contains(err.Error(), "no step back") {
		t.Errorf("forwards: %v", err)
	}
	r.To = 12
	if err := store.Rewind(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	p, err := store.Position(t.Context(), signal.Requests, "telemetry", 3)
	if err != nil || p.Incarnation != 2 || p.End != 12 || !p.Watermark.Equal(at(4)) || !p.RecordTime.IsZero() {
		t.Errorf("position %+v, %v", p, err)
	}
	if s := one[string](t, db, "SELECT toString((incarnation, from_offset, to_offset, `by`, reason)) FROM ingest_rewinds"); s != "(2,20,12,'jane','a wrong pipeline')" {
		t.Errorf("recorded is %s", s)
	}
	again := requests(12, 20, 5)
	again.Range.Incarnation = 2
	if err := store.Insert(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if n := one[uint64](t, db, "SELECT count() FROM ingest_audit WHERE hole != 0"); n != 0 {
		t.Errorf("%d holes", n)
	}
	marks, err := NewTimeline(db).Progress(t.Context())
	if err != nil || len(marks.Marks) != 2 || marks.Marks[1].End != 20 {
		t.Errorf("progress %+v, %v", marks, err)
	}
}
