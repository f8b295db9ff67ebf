// Package scenario makes up worlds: it reads a declarative file that says what a company's services do on a day
// (traffic, resources, changes, customers' tickets), what goes wrong and why, and plays that day as native events,
// the same for the same seed. The truth comes with it: what was wrong from when to when, what caused it, and the exact
// totals of everything that was emitted, so that whatever counts the events can be checked against them.
//
// It knows nothing of rules, detection or their thresholds, and does no input or output beyond reading its files from
// an fs.FS. The demo, the tests of the loops, the recordings for backtests and the benchmarks use it. A new scenario is
// a new file under deploy/demo/scenarios, not code.
//
// The words of a file: a driver is a curve over the day, such as "how short of connections the database is"; an effect
// lets a driver act on gauges or on paths, chosen by name or through the catalogue's dependencies; a shift moves what
// belongs together by a random time, so that seeds differ.
package scenario
