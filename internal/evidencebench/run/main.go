// Command run prints the comparison of package evidencebench as Markdown: make bench-evidence.
package main

import (
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tocsin-project/tocsin/internal/evidencebench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "evidencebench:", err)
		os.Exit(1)
	}
}

func run() error {
	sensitivity := flag.Bool("sensitivity", false, "sweep the constants instead")
	seeds := flag.Int("seeds", evidencebench.Full.Seeds, "months of the realistic world")
	flag.Parse()
	progress := func(s string) { fmt.Fprintln(os.Stderr, s) }
	if *sensitivity {
		return evidencebench.Sensitivity(os.Stdout, 7, 4, progress)
	}
	r := evidencebench.Full
	r.Seeds, r.Progress = *seeds, progress
	m := evidencebench.BenchModel()
	worlds, traces := r.Worlds(m), r.Traces(m)
	return r.Write(os.Stdout, worlds, traces, cpu())
}

// cpu is what this process has used: on a busy machine the wall clock says little.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
