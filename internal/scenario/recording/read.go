package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// MaxLine bounds one line.
const MaxLine = 4 << 20

// Recording is a folder that was found to hold events. It holds no open file.
type Recording struct {
	Name      string // of the folder
	Dir       string
	Events    string // path of the events
	Catalogue string // path, "" if there is none
	Labels    string
	Rules     string
}

// Open finds what the folder holds.
func Open(dir string) (*Recording, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	r := &Recording{Name: filepath.Base(abs), Dir: dir}
	for _, suffix := range []string{"", ".gz", ".zst"} {
		name := filepath.Join(dir, eventsFile+suffix)
		if !exists(name) {
			continue
		}
		if r.Events != "" {
			return nil, fmt.Errorf("open recording: both %s and %s are there", r.Events, name)
		}
		r.Events = name
	}
	if r.Events == "" {
		return nil, fmt.Errorf("open recording: %s has no %s, %s.gz or %s.zst", dir, eventsFile, eventsFile, eventsFile)
	}
	for name, to := range map[string]*string{catalogueFile: &r.Catalogue, labelsFile: &r.Labels, rulesFolder: &r.Rules} {
		if path := filepath.Join(dir, name); exists(path) {
			*to = path
		}
	}
	return r, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// All yields the events in the order of the file, from its beginning each time it is called. A line that is no event is
// a *LineError, after which the next lines go on for a caller that goes on; any other error is the last.
func (r *Recording) All() iter.Seq2[signal.Event, error] {
	return func(yield func(signal.Event, error) bool) {
		file, err := os.Open(r.Events)
		if err != nil {
			yield(nil, fmt.Errorf("read recording: %w", err))
			return
		}
		defer func() { _ = file.Close() }() // only read
		in, done, err := decompress(r.Events, file)
		if err != nil {
			yield(nil, fmt.Errorf("read recording %s: %w", r.Events, err))
			return
		}
		defer done()
		read(r.Events, in, yield)
	}
}

func decompress(name string, file io.Reader) (io.Reader, func(), error) {
	switch filepath.Ext(name) {
	case ".gz":
		z, err := gzip.NewReader(file)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { _ = z.Close() }, nil
	case ".zst":
		z, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return file, func() {}, nil
}

func read(name string, in io.Reader, yield func(signal.Event, error) bool) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), MaxLine)
	goOn, line := true, 0
	emit := func(e signal.Event) { goOn = goOn && yield(e, nil) }
	for goOn && lines.Scan() {
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		if err := signaljson.DecodeTyped(text, emit); err != nil {
			goOn = yield(nil, &LineError{name, line, err})
		}
	}
	if err := lines.Err(); err != nil && goOn {
		if errors.Is(err, bufio.ErrTooLong) {
			err = &LineError{name, line + 1, fmt.Errorf("the line is longer than %d bytes", MaxLine)}
		}
		yield(nil, fmt.Errorf("read recording: %w", err))
	}
}
