package kafkalocal_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, addr string) *kafka.Client {
	tr := &kafka.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(addr), Transport: tr, Timeout: 5 * time.Second}
}

func produce(t *testing.T, cl *kafka.Client, topic, value string) int64 {
	t.Helper()
	res, err := cl.Produce(t.Context(), &kafka.ProduceRequest{Topic: topic, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(kafka.Record{Time: time.Now(), Value: kafka.NewBytes([]byte(value))})})
	if err != nil || res.Error != nil {
		t.Fatalf("produce: %v %v", err, res)
	}
	return res.BaseOffset
}

func offsets(t *testing.T, cl *kafka.Client, topic string) (first, last int64) {
	t.Helper()
	res, err := cl.ListOffsets(t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0)}}})
	if err != nil || len(res.Topics[topic]) != 1 || res.Topics[topic][0].Error != nil {
		t.Fatalf("list offsets: %v %+v", err, res)
	}
	return res.Topics[topic][0].FirstOffset, res.Topics[topic][0].LastOffset
}

func commit(t *testing.T, cl *kafka.Client, topic string, off int64) {
	t.Helper()
	res, err := cl.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{GroupID: "g", GenerationID: -1,
		Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 0, Offset: off, Metadata: "m"}}}})
	if err != nil || res.Topics[topic][0].Error != nil {
		t.Fatalf("commit: %v %+v", err, res)
	}
}

func committed(t *testing.T, cl *kafka.Client, topic string) int64 {
	t.Helper()
	res, err := cl.OffsetFetch(t.Context(), &kafka.OffsetFetchRequest{GroupID: "g", Topics: map[string][]int{topic: {0}}})
	if err != nil || res.Error != nil || res.Topics[topic][0].Error != nil {
		t.Fatalf("fetch committed offset: %v %+v", err, res)
	}
	return res.Topics[topic][0].CommittedOffset
}

func start(t *testing.T, o kafkalocal.Options) *kafkalocal.Broker {
	t.Helper()
	b, err := kafkalocal.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestRecordsOffsetsAndTopicsSurviveRestart(t *testing.T) {
	o := kafkalocal.Options{DataDir: t.TempDir(), Topics: []kafkalocal.Topic{{Name: "telemetry", Partitions: 2}}}
	b := start(t, o)
	o.Addr = b.Addr()
	cl := client(t, b.Addr())
	for i := range 10 {
		produce(t, cl, "telemetry", fmt.Sprint(i))
	}
	commit(t, cl, "telemetry", 7)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	o.Topics = []kafkalocal.Topic{{Name: "telemetry", Partitions: 3, Retention: time.Hour}, {Name: "tickets"}}
	b = start(t, o)
	if b.Addr() != o.Addr {
		t.Errorf("address after restart %s, want %s", b.Addr(), o.Addr)
	}
	cl = client(t, b.Addr())
	if first, last := offsets(t, cl, "telemetry"); first != 0 || last != 10 {
		t.Errorf("offsets %d to %d, want 0 to 10", first, last)
	}
	if c := committed(t, cl, "telemetry"); c != 7 {
		t.Errorf("committed %d, want 7", c)
	}
	md, err := cl.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{"telemetry", "tickets"}})
	if err != nil {
		t.Fatal(err)
	}
	if n, m := len(md.Topics[0].Partitions), len(md.Topics[1].Partitions); n != 3 || m != 1 {
		t.Errorf("partitions %d and %d, want 3 and 1", n, m)
	}
}

// A crash can leave half an entry at the end of the group log. Commits made after the next start must survive the start
// after that: without the extra open and close they are appended behind the rubbish and lost.
func TestTornGroupLogDoesNotLoseLaterCommits(t *testing.T) {
	crashed := t.TempDir()
	{
		dir := t.TempDir()
		b := start(t, kafkalocal.Options{DataDir: dir, Topics: []kafkalocal.Topic{{Name: "t"}}})
		cl := client(t, b.Addr())
		produce(t, cl, "t", "x")
		commit(t, cl, "t", 1)
		// What is on disk now, without a clean close, is what a killed process leaves.
		if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(crashed, "kfake", "groups.log")
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{200, 0, 0, 0, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()

	again := t.TempDir()
	{
		b := start(t, kafkalocal.Options{DataDir: crashed, Topics: []kafkalocal.Topic{{Name: "t"}}})
		cl := client(t, b.Addr())
		if c := committed(t, cl, "t"); c != 1 {
			t.Fatalf("committed before the crash 1, after it %d", c)
		}
		commit(t, cl, "t", 2)
		if err := os.CopyFS(again, os.DirFS(crashed)); err != nil { // The second crash.
			t.Fatal(err)
		}
	}
	b := start(t, kafkalocal.Options{DataDir: again, Topics: []kafkalocal.Topic{{Name: "t"}}})
	if c := committed(t, client(t, b.Addr()), "t"); c != 2 {
		t.Errorf("committed 2 after a torn log, %d after the next crash", c)
	}
}

func TestSecondBrokerOnOneDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	b := start(t, kafkalocal.Options{DataDir: dir})
	_, err := kafkalocal.Start(t.Context(), kafkalocal.Options{DataDir: dir})
	if !errors.Is(err, kafkalocal.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second start: %v, want it locked by this process", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, kafkalocal.Options{DataDir: dir})
}

func TestTooLittleDiskRefusesToStart(t *testing.T) {
	_, err := kafkalocal.Start(t.Context(), kafkalocal.Options{DataDir: t.TempDir(), MinFreeBytes: 1 << 62})
	if !errors.Is(err, kafkalocal.ErrDiskFull) {
		t.Errorf("start without disk: %v", err)
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:9092", ":9092", "192.0.2.1:9092", "127.0.0.1:x", "127.0.0.1"} {
		if _, err := kafkalocal.Start(t.Context(), kafkalocal.Options{Addr: addr}); err == nil {
			t.Errorf("%s was accepted", addr)
		}
	}
}

func TestRetentionRemovesOldRecords(t *testing.T) {
	b := kafkatest.StartWith(t, kafkalocal.Options{CleanerBackoff: 20 * time.Millisecond,
		Topics: []kafkalocal.Topic{{Name: "short", Retention: 50 * time.Millisecond}, {Name: "long"}}})
	cl := client(t, b.Addr())
	produce(t, cl, "short", "x")
	produce(t, cl, "long", "x")
	eventually(t, "the short topic is empty", func() bool { first, _ := offsets(t, cl, "short"); return first == 1 })
	if first, last := offsets(t, cl, "long"); first != 0 || last != 1 {
		t.Errorf("the long topic lost its record: %d to %d", first, last)
	}
}

func TestStrangersOnThePortDoNotStopTheBroker(t *testing.T) {
	addr := kafkatest.Start(t, kafkalocal.Topic{Name: "t"})
	for _, junk := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x10\x7f\xff0123456789abcdef"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(junk)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection stayed open: %d bytes, %v", n, err)
		}
		_ = c.Close()
	}
	produce(t, client(t, addr), "t", "still there")
}

func TestStartHonoursItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := kafkalocal.Start(ctx, kafkalocal.Options{Topics: []kafkalocal.Topic{{Name: "t"}}}); err == nil {
		t.Error("start with an ended context succeeded")
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in 10 s: %s", what)
		}
	}
}
