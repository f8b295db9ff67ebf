//go:build !(linux && (amd64 || arm64))

package engine

import (
	"context"
	"fmt"
	"runtime"
)

// Engine does not exist on this platform.
type Engine struct{}

// Conn does not exist on this platform.
type Conn struct{}

// Open fails: what a port needs is the library's package in cmd/chlocal/lib and keepSignals for the platform.
func Open(context.Context, Options) (*Engine, error) {
	return nil, fmt.Errorf("chlocal does not run on %s/%s: use a ClickHouse server instead", runtime.GOOS, runtime.GOARCH)
}

func (*Engine) Version() string                                                { return "" }
func (*Engine) Connect() (*Conn, error)                                        { return nil, nil }
func (*Engine) Kill(string) error                                              { return nil }
func (*Engine) KillAll() error                                                 { return nil }
func (*Engine) Close()                                                         {}
func (*Conn) Tag() string                                                      { return "" }
func (*Conn) Close()                                                           {}
func (*Conn) Exec(string) (Summary, error)                                     { return Summary{}, nil }
func (*Conn) Query([]byte, string, []Param, func([]byte, Summary) error) error { return nil }
func (*Conn) Stream(context.Context, []byte, string, []Param, func([]byte) error) error {
	return nil
}
