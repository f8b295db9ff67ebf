//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Conn is one connection to the engine. It runs one statement at a time and is not safe for concurrent use. After an
// error, close it: a failed statement stays in the engine's process list, with its table locks, until its connection
// runs something else or is closed.
type Conn struct {
	engine *Engine
	handle ptr // as returned by connect, needed to close
	conn   ptr
	tag    string
}

// Tag is the connection's log_comment prefix, by which Engine.Kill finds what runs on it.
func (c *Conn) Tag() string { return c.tag }

// Close may be called twice.
func (c *Conn) Close() {
	if c.handle == nil {
		return
	}
	c.engine.lib.closeConn(c.handle)
	c.handle, c.conn = nil, nil
}

// Exec runs a statement and drops its output.
func (c *Conn) Exec(statement string) (Summary, error) {
	var s Summary
	err := c.Query([]byte(statement), "Null", nil, func(_ []byte, summary Summary) error {
		s = summary
		return nil
	})
	return s, err
}

// Query runs a statement, materialises its output in the given format and hands it to use. The bytes are the engine's
// and are valid only during that call.
func (c *Conn) Query(statement []byte, format string, params []Param, use func(output []byte, s Summary) error) error {
	r, err := c.result(c.call(c.engine.lib.query, statement, format, params))
	if err != nil {
		return err
	}
	defer c.engine.lib.destroy(r)
	return use(c.bytes(r), c.summary(r))
}

// Stream runs a SELECT and hands its output to chunk, piece by piece as the engine makes it. It stops when chunk
// fails or ctx ends; the connection must then be closed.
func (c *Conn) Stream(ctx context.Context, statement []byte, format string, params []Param, chunk func([]byte) error) error {
	lib := c.engine.lib
	stream, err := c.result(c.call(lib.streamQuery, statement, format, params))
	if err != nil {
		return err
	}
	defer lib.destroy(stream)
	next := func() (done bool, err error) {
		r, err := c.result(lib.streamFetch(c.conn, stream))
		if err != nil {
			return true, err
		}
		defer lib.destroy(r)
		b := c.bytes(r)
		if len(b) == 0 {
			return true, nil
		}
		if err := errors.Join(ctx.Err(), chunk(b)); err != nil {
			lib.streamCancel(c.conn, stream)
			return true, err
		}
		return false, nil
	}
	for {
		if done, err := next(); done {
			return err
		}
	}
}

type queryFunc = func(conn, query ptr, queryLen uintptr, format ptr, formatLen uintptr, names, nameLens, values, valueLens ptr, n uintptr) ptr

// call passes Go memory to C for the duration of one call: the engine copies what it keeps.
func (c *Conn) call(f queryFunc, statement []byte, format string, params []Param) ptr {
	var names, values []ptr
	var nameLens, valueLens []uintptr
	for _, p := range params {
		names, nameLens = append(names, cstring(p.Name)), append(nameLens, uintptr(len(p.Name)))
		values, valueLens = append(values, cstring(p.Value)), append(valueLens, uintptr(len(p.Value)))
	}
	text, form := cstring(string(statement)), cstring(format)
	r := f(c.conn, text, uintptr(len(statement)), form, uintptr(len(format)),
		ptr(unsafe.SliceData(names)), ptr(unsafe.SliceData(nameLens)), ptr(unsafe.SliceData(values)), ptr(unsafe.SliceData(valueLens)), uintptr(len(params)))
	runtime.KeepAlive(names)
	runtime.KeepAlive(values)
	runtime.KeepAlive(nameLens)
	runtime.KeepAlive(valueLens)
	runtime.KeepAlive(text)
	runtime.KeepAlive(form)
	return r
}

func (c *Conn) result(r ptr) (ptr, error) {
	if r == nil {
		return nil, errors.New("the engine returned no result")
	}
	if message := gostring(c.engine.lib.resultError(r)); message != "" {
		c.engine.lib.destroy(r)
		return nil, parseError(message)
	}
	return r, nil
}

func (c *Conn) bytes(r ptr) []byte {
	b := c.engine.lib.buffer(r)
	if b == nil {
		return nil
	}
	return unsafe.Slice((*byte)(b), int(c.engine.lib.length(r)))
}

func (c *Conn) summary(r ptr) Summary {
	l := c.engine.lib
	return Summary{ResultRows: l.rows(r), ReadRows: l.readRows(r), ReadBytes: l.readBytes(r), WrittenRows: l.writtenRows(r), WrittenBytes: l.writtenBytes(r)}
}

func cstring(s string) ptr {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return ptr(&b[0])
}

func gostring(p ptr) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// connect opens a raw connection. A nil answer carries no reason: the engine writes it to standard error.
func (e *Engine) connect() (handle, conn ptr, err error) {
	args := append([]string{"clickhouse"}, e.args...)
	argv := make([]ptr, len(args)+1)
	for i, a := range args {
		argv[i] = cstring(a)
	}
	keepSignals(func() { handle = e.lib.connect(int32(len(args)), ptr(&argv[0])) })
	runtime.KeepAlive(argv)
	if handle == nil {
		return nil, nil, fmt.Errorf("the engine refused to connect (%s)", strings.Join(e.args, " "))
	}
	return handle, *(*ptr)(handle), nil
}
