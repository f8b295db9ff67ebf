package departure

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// AppendBinary writes a Watch. Equal ones give equal bytes.
func (w *Watch) AppendBinary(b []byte) ([]byte, error) {
	return binary.Append(b, binary.LittleEndian, &w.s)
}

// Decode reads what AppendBinary wrote. Figures that cannot be are an error, never a panic: a snapshot comes from outside.
func Decode(data []byte) (*Watch, error) {
	var w Watch
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, &w.s); err != nil {
		return nil, fmt.Errorf("reading what is known of a gauge: %w", err)
	}
	if n := binary.Size(&w.s); len(data) != n {
		return nil, fmt.Errorf("what is known of a gauge has %d bytes, want %d", len(data), n)
	}
	s := &w.s
	if s.NearN > 2*maxNear || s.HighN > 2*maxHeight || s.ScaleN[local] > 2*maxScale || s.ScaleN[daily] > 2*maxScale || s.OpenN > uint32(len(s.Open)) {
		return nil, fmt.Errorf("what is known of a gauge counts more than it can hold")
	}
	return &w, nil
}
