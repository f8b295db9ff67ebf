package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// line is one of the file of records.
type line struct {
	Workload string
	Spans    int
	Reader   string
	Result   result
}

// recorded reads the earlier runs of a workload, for measurements that a machine is only free for piece by piece.
func (b *bench) recorded(w workload) (map[string][]result, error) {
	all := map[string][]result{}
	if b.record == "" {
		return all, nil
	}
	f, err := os.Open(b.record)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read earlier runs: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r line
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("read earlier runs: %w", err)
		}
		if r.Workload == w.Name && r.Spans == w.Spans {
			all[r.Reader] = append(all[r.Reader], r.Result)
		}
	}
	return all, nil
}

// keep adds a run.
func (b *bench) keep(w workload, all map[string][]result, reader string, r result) error {
	all[reader] = append(all[reader], r)
	if b.record == "" {
		return nil
	}
	j, err := json.Marshal(line{w.Name, w.Spans, reader, r})
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	f, err := os.OpenFile(b.record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(j, '\n')); err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	return nil
}

// micros is a duration by span.
func (w workload) micros(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond) / float64(w.Spans)
}
