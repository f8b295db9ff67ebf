// Package route decides who hears of an incident: the routes file in Alertmanager's shape, its matchers and its time
// intervals. It knows nothing of how a receiver is reached: the kinds of integrations are handed in, decoded by their
// own packages, and carried along. Time is an argument.
package route
