package kafkalocal

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// The floor is raised under a running broker, which is what a filling disk looks like from here.
func TestBrokerStopsWhenTheDiskFillsUp(t *testing.T) {
	dir := t.TempDir()
	free, err := freeBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Start(t.Context(), Options{DataDir: dir, MinFreeBytes: free / 2, DiskCheckEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.watch.Add(1)
	go b.watchHealth(Options{DataDir: dir, MinFreeBytes: free * 2, DiskCheckEvery: time.Millisecond})
	<-b.Done()
	if err := b.Err(); !errors.Is(err, ErrDiskFull) {
		t.Errorf("stopped by %v", err)
	}
	if err := b.Close(); !errors.Is(err, ErrDiskFull) {
		t.Errorf("Close returned %v", err)
	}
}

func TestBrokerStopsWhenAWriteFails(t *testing.T) {
	b, err := Start(t.Context(), Options{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	(&slogAdapter{log: b.log, failed: b.failed}).Logf(kfake.LogLevelWarn, "persist group entry write: %v", os.ErrInvalid)
	<-b.Done()
	if err := b.Err(); !errors.Is(err, ErrWriteFailed) {
		t.Errorf("stopped by %v", err)
	}
}
