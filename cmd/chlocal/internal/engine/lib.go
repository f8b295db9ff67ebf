//go:build linux && (amd64 || arm64)

package engine

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/ebitengine/purego"
)

type ptr = unsafe.Pointer

// library is the part of libchdb's C interface that chlocal needs. Lengths travel beside pointers: statements and
// results are binary.
type library struct {
	connect      func(argc int32, argv ptr) ptr
	closeConn    func(conn ptr)
	query        func(conn, query ptr, queryLen uintptr, format ptr, formatLen uintptr, names, nameLens, values, valueLens ptr, n uintptr) ptr
	streamQuery  func(conn, query ptr, queryLen uintptr, format ptr, formatLen uintptr, names, nameLens, values, valueLens ptr, n uintptr) ptr
	streamFetch  func(conn, result ptr) ptr
	streamCancel func(conn, result ptr)

	destroy      func(result ptr)
	buffer       func(result ptr) ptr
	length       func(result ptr) uintptr
	resultError  func(result ptr) ptr
	rows         func(result ptr) uint64
	readRows     func(result ptr) uint64
	readBytes    func(result ptr) uint64
	writtenRows  func(result ptr) uint64
	writtenBytes func(result ptr) uint64

	enableSignalHandlers func(on int32)
}

// load opens the shared library and binds every function, so that a library of another version fails here, with the
// name of what it lacks, and not in the middle of a query.
func load(path string) (l *library, err error) {
	defer func() {
		if r := recover(); r != nil { // purego panics on a missing symbol
			l, err = nil, fmt.Errorf("%s is not the libchdb that chlocal was built for: %v", path, r)
		}
	}()
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("load the engine: %w", err)
	} else if info.IsDir() {
		return nil, fmt.Errorf("load the engine: %s is a folder, want the file libchdb.so", path)
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load the engine: %w", err)
	}
	l = &library{}
	for name, fn := range map[string]any{
		"chdb_connect":                     &l.connect,
		"chdb_close_conn":                  &l.closeConn,
		"chdb_query_with_params_n":         &l.query,
		"chdb_stream_query_with_params_n":  &l.streamQuery,
		"chdb_stream_fetch_result":         &l.streamFetch,
		"chdb_stream_cancel_query":         &l.streamCancel,
		"chdb_destroy_query_result":        &l.destroy,
		"chdb_result_buffer":               &l.buffer,
		"chdb_result_length":               &l.length,
		"chdb_result_error":                &l.resultError,
		"chdb_result_rows_read":            &l.rows,
		"chdb_result_storage_rows_read":    &l.readRows,
		"chdb_result_storage_bytes_read":   &l.readBytes,
		"chdb_result_rows_written":         &l.writtenRows,
		"chdb_result_bytes_written":        &l.writtenBytes,
		"chdb_set_signal_handlers_enabled": &l.enableSignalHandlers,
	} {
		purego.RegisterLibFunc(fn, handle, name)
	}
	keepSignals(func() { l.enableSignalHandlers(0) })
	return l, nil
}
