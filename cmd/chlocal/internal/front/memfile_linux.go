package front

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// memfile is a request's data where the engine can read it as a file, in memory. The engine runs in this process, so
// the descriptor's path is enough. A nil memfile may be closed.
type memfile struct {
	file *os.File
	path string
	size int64
}

func newMemfile(data io.Reader, max int64) (*memfile, error) {
	fd, err := unix.MemfdCreate("chlocal-data", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("hold the request's data: %w", err)
	}
	m := &memfile{file: os.NewFile(uintptr(fd), "memfd"), path: fmt.Sprintf("/proc/self/fd/%d", fd)}
	// Without the wrapper io.Copy would let the file choose its own, small, buffer.
	m.size, err = io.CopyBuffer(struct{ io.Writer }{m.file}, io.LimitReader(data, max+1), make([]byte, 256<<10))
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
	}
}
