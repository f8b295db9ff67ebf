// Command testsummary reads the output of `go test -json` and prints what a person needs from it while it runs: a line
// for each package, the whole output of what failed, and at the end the skipped tests with their reasons and one line
// "N passed, N failed, N skipped". It exits 1 when anything failed.
//
// It is for `make test` and continuous integration; it runs no tests itself.
package main

import (
	"fmt"
	"os"
)

func main() {
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary: read test events:", err)
		os.Exit(2)
	}
	if !s.finish() {
		os.Exit(1)
	}
}
