package detect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// blockSize is about how much is packed before it is compressed, so that a large state is never in memory as a whole, twice.
const blockSize = 1 << 20

// maxBlock bounds what a snapshot may claim of a block: one memory of one rule is in one.
const maxBlock = 1 << 30

// blocks writes what is packed in blocks, each with its length before it. What is read at once lies in one block.
type blocks struct {
	packer
	to  io.Writer
	err error
}

func (w *blocks) flush(all bool) {
	if len(w.b) < blockSize && !all || w.err != nil {
		return
	}
	var head [binary.MaxVarintLen64]byte
	if _, w.err = w.to.Write(binary.AppendUvarint(head[:0], uint64(len(w.b)))); w.err == nil {
		_, w.err = w.to.Write(w.b)
	}
	w.b = w.b[:0]
}

// unblock reads them.
type unblock struct {
	unpacker
	from io.Reader
}

// next reads a block once the one before is used up.
func (r *unblock) next() {
	if len(r.b) > 0 || r.err != nil {
		return
	}
	n, err := binary.ReadUvarint(byteReader{r.from})
	switch {
	case errors.Is(err, io.EOF):
		return // what is missing is missed by who needs it
	case err != nil:
		r.err = err
		return
	case n > maxBlock:
		r.err = fmt.Errorf("a block of %d bytes", n)
		return
	}
	b := make([]byte, n) // texts and memories go on using it
	if _, r.err = io.ReadFull(r.from, b); r.err == nil {
		r.b = b
	}
}

// count is the length of a list whose elements may lie in blocks to come.
func (r *unblock) count() int {
	r.next()
	return int(min(r.uint(), maxBlock))
}

type byteReader struct{ io.Reader }

func (r byteReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.Reader, b[:])
	return b[0], err
}

func (w *packer) proof(p *proofState) {
	w.text(p.Rule)
	w.key(p.Key)
	// Places are written as numbers below zero where nothing waits to be judged: before that was told, all were taken to be fresh.
	place := int64(p.Place)
	if !p.Fresh {
		place = ^place
	}
	w.int(place)
	w.blob(p.Data)
}

func (r *unpacker) proof() proofState {
	p := proofState{Rule: r.text(), Key: r.key()}
	place := r.int()
	if p.Fresh = place >= 0; !p.Fresh {
		place = ^place
	}
	p.Place, p.Data = int(place), r.blob()
	return p
}
