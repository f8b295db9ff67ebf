// Package signal holds the vocabulary of what Tocsin measures: paths, outcomes, attributes, the native
// events and the cells they are counted in. It is a leaf: it imports nothing of Tocsin, does no input or
// output and never reads a clock, so that every loop can speak in its types.
package signal
