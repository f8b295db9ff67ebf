//go:build unix

package outbox

import (
	"os"
	"syscall"
)

// lockFile takes the lock that the kernel releases with the process.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
