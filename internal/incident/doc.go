// Package incident holds the vocabulary of what Tocsin concludes: findings, warnings, suspects, incidents and
// the events of the incident log, with the pure state machine that moves an incident through its life. It is a
// leaf: time is an argument, nothing is read or written.
package incident
