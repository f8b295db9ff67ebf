//go:build !unix

package chlocal

import (
	"context"
	"io"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// lockFile has nothing to lock: Install refuses these platforms.
func lockFile(context.Context, string, io.Writer) (func(), error) { return func() {}, nil }
