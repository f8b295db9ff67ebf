//go:build linux && (amd64 || arm64)

package engine

import (
	"io"
	"os"
	"strings"
	"syscall"
)

// captureStderr runs f and returns what was written to file descriptor 2 meanwhile. The engine reports why it did not
// start nowhere else. If f crashes the process its words are lost, so only the start is run this way.
func captureStderr(f func()) string {
	file, err := os.CreateTemp("", "chlocal-start-*")
	if err != nil {
		f()
		return ""
	}
	defer file.Close()
	os.Remove(file.Name())
	saved, err := syscall.Dup(2)
	if err != nil {
		f()
		return ""
	}
	defer syscall.Close(saved)
	if err := syscall.Dup3(int(file.Fd()), 2, 0); err != nil {
		f()
		return ""
	}
	f()
	_ = syscall.Dup3(saved, 2, 0)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(file, 64<<10))
	return strings.TrimSpace(string(text))
}
