// Package chlocal starts ClickHouse for one machine: it installs the engine's library into the user's cache, and
// supervises the program cmd/chlocal that serves it. It is used by `tocsin demo` and by tests; a production Tocsin
// talks to a ClickHouse server and never comes here. Queries go through clickhouse-go to Server.Addr (HTTP protocol).
package chlocal

// Ready is the line that chlocal writes to standard output once it answers, as JSON.
type Ready struct {
	Addr    string `json:"addr"`
	Version string `json:"version"` // the engine's
}
