package realkafka

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the broker when the test process is killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
