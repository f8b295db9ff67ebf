package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that finds no database says which one and why in a line, not how the driver asked.
func TestStoredHistoryOutOfReachIsOneShortLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tocsin.yaml")
	if err := os.WriteFile(file, []byte("kafka: {brokers: [\"127.0.0.1:1\"]}\nclickhouse: {addresses: [\"127.0.0.1:1\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenStored(t.Context(), file)
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "127.0.0.1:1") || len(err.Error()) > 160 {
		t.Errorf("said %v", err)
	}
}
