// Package series makes counts out of cumulative series: counters and histograms that say how many there were since their
// process began. It is for series as OpenTelemetry and Prometheus write them, whichever partition their points came by, in
// any order, more than once.
//
// It is a pure function of points and of what is known of their series before; reading and storing both is the business
// of whoever calls it. It is not for gauges, whose value is what it is.
package series
