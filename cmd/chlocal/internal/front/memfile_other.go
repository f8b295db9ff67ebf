//go:build !linux

package front

import (
	"fmt"
	"io"
	"os"
)

// memfile is a request's data where the engine can read it as a file: a temporary one, as only Linux has files in
// memory. A nil memfile may be closed.
type memfile struct {
	file *os.File
	path string
	size int64
}

func newMemfile(data io.Reader, max int64) (*memfile, error) {
	f, err := os.CreateTemp("", "chlocal-data-*")
	if err != nil {
		return nil, fmt.Errorf("hold the request's data: %w", err)
	}
	m := &memfile{file: f, path: f.Name()}
	m.size, err = io.Copy(f, io.LimitReader(data, max+1))
	switch {
	case err != nil:
		err = fmt.Errorf("read the request's data: %w", err)
	case m.size > max:
		err = errTooLarge
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *memfile) close() {
	if m != nil {
		m.file.Close()
		os.Remove(m.path)
	}
}
