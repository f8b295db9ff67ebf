//go:build linux && (amd64 || arm64)

package engine

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// sigaction is the kernel's layout, the same on amd64 and arm64; libc's wrapper is of no use here because it refuses
// the signals it keeps for itself.
type sigaction struct{ handler, flags, restorer, mask uint64 }

const signals = 64

var keepMu sync.Mutex

// keepSignals runs f and afterwards gives back every signal handler that f took from Go.
//
// Versions of the library differ in what they touch: some reset handlers when told not to install their own, and on
// every connect. Without Go's SIGSEGV handler a nil dereference kills the process instead of panicking, and without
// SIGURG goroutines are no longer preempted. Only what Go owned is restored, so a handler that the engine installed for
// a signal of its own stays. The lock keeps two connects from saving each other's half-changed tables.
func keepSignals(f func()) {
	keepMu.Lock()
	defer keepMu.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var saved [signals + 1]sigaction
	for s := 1; s <= signals; s++ {
		rtSigaction(s, nil, &saved[s])
	}
	f()
	for s := 1; s <= signals; s++ {
		var now sigaction
		rtSigaction(s, nil, &now)
		const ignore = 1 // SIG_DFL is 0, SIG_IGN is 1: anything above is a handler
		if now.handler != saved[s].handler && saved[s].handler > ignore {
			rtSigaction(s, &saved[s], nil)
		}
	}
}

func rtSigaction(signal int, set, old *sigaction) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}
