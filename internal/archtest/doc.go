// Package archtest holds the shape of the tree in tests: which package may import which, where goroutines need a leak
// check, how long a file may grow. The table of packages is in table_test.go; a new package gets a row there.
//
// It has no code that runs in Tocsin.
package archtest
