package measured

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Record is a file of runs, a line of JSON each, for measurements that a machine is only free for piece by piece. Without a name nothing
// is kept.
type Record[T any] string

// lineMax bounds a run; it holds each of its ticks and findings.
const lineMax = 64 << 20

// Each gives the runs that the file has, if it is there.
func (r Record[T]) Each(see func(T)) error {
	if r == "" {
		return nil
	}
	f, err := os.Open(string(r))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read earlier runs: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, lineMax)
	for n := 1; lines.Scan(); n++ {
		var run T
		if err := json.Unmarshal(lines.Bytes(), &run); err != nil {
			return fmt.Errorf("read earlier runs: %s:%d: %w", string(r), n, err)
		}
		see(run)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read earlier runs: %w", err)
	}
	return nil
}

// Add keeps a run.
func (r Record[T]) Add(run T) error {
	if r == "" {
		return nil
	}
	j, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	f, err := os.OpenFile(string(r), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // named by who runs it, for everybody to read
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	if _, err := f.Write(append(j, '\n')); err != nil {
		f.Close()
		return fmt.Errorf("record a run: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	return nil
}
