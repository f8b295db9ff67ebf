package chlocal

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the thread that starts it ends. It backs up the pipe on standard
// input, which a stuck child would not read; an acknowledged insert is on disk by then.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
