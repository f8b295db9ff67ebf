package chlocal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// runNPM installs what the lockfile in dir pins. It says how many bytes are there every few seconds.
func runNPM(ctx context.Context, npm, dir string, p pin, progress io.Writer) error {
	// http is the level at which npm says why a fetch failed: an optional package that cannot be fetched is no error to
	// it, and it exits with 0.
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--loglevel=http", "--fetch-retries=2", "--fetch-retry-factor=2", "--fetch-retry-mintimeout=1000")
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start npm: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	began := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("install the embedded ClickHouse: %w", context.Cause(ctx))
			}
			if err == nil && hasLibrary(dir, p) {
				return nil
			}
			why := reason(said.String())
			switch {
			case why != "":
			case err != nil:
				why = err.Error()
			default:
				why = "it took the package for one of another system (it needs glibc)"
			}
			return fmt.Errorf("install the embedded ClickHouse: npm could not install %s %s: %s", p.Name, p.Version, why)
		case <-tick.C:
			fmt.Fprintf(progress, "Installing the embedded ClickHouse: %d MB written after %s\n", folderBytes(dir)>>20, time.Since(began).Round(time.Second))
		}
	}
}

func hasLibrary(dir string, p pin) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "node_modules", filepath.FromSlash(p.Name), "libchdb*"))
	return len(found) > 0
}

var (
	failedFetch = regexp.MustCompile(`failed with (\S+)`)
	npmError    = regexp.MustCompile(`(?m)^npm error (code )?(.+)$`)
)

// reason makes one line of npm's many.
func reason(output string) string {
	if m := npmError.FindStringSubmatch(output); m != nil {
		return strings.TrimSpace(m[2])
	}
	if m := failedFetch.FindAllStringSubmatch(output, -1); m != nil {
		return "the registry did not answer (" + m[len(m)-1][1] + "); is this machine offline?"
	}
	return ""
}

func folderBytes(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil // files come and go while npm works
	})
	return n
}
