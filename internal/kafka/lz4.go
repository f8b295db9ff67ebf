package kafka

import (
	"encoding/binary"
	"fmt"

	"github.com/pierrec/lz4/v4"
)

// Parts of the LZ4 frame format.
const (
	lz4Magic          = 0x184d2204
	lz4Version        = 0x40
	lz4VersionMask    = 0xc0
	lz4Independent    = 0x20
	lz4BlockChecksum  = 0x10
	lz4Size           = 0x08
	lz4Checksum       = 0x04
	lz4Dictionary     = 0x01
	lz4Uncompressed   = 1 << 31
	lz4Window         = 64 << 10
	lz4BlockSizeShift = 4
	lz4Guess          = 6 // times smaller is what is compressed, to begin with
)

var lz4BlockSizes = [8]int{4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}

// lz4Frame decompresses one LZ4 frame to out, straight from block to block: a reader of streams copies each block twice and
// sums up all bytes once more, which the checksum of the record batch has done. It tells false for what is not the usual
// frame, and what it says then is of no meaning.
func lz4Frame(b, out []byte) ([]byte, bool, error) {
	if len(b) < 7 || binary.LittleEndian.Uint32(b) != lz4Magic {
		return out, false, nil
	}
	flags, size := b[4], lz4BlockSizes[b[5]>>lz4BlockSizeShift&7]
	if flags&lz4VersionMask != lz4Version || flags&lz4Dictionary != 0 || size == 0 {
		return out, false, nil
	}
	b = b[6:]
	if flags&lz4Size != 0 {
		if len(b) < 8 {
			return out, false, nil
		}
		b = b[8:]
	}
	if len(b) < 1 {
		return out, false, nil
	}
	b = b[1:] // checksum of the header
	if cap(out) == 0 {
		out = make([]byte, 0, min(lz4Guess*len(b), maxBatchBytes))
	}
	for {
		if len(b) < 4 {
			return out, false, nil
		}
		head := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if head == 0 {
			break
		}
		n := int(head &^ lz4Uncompressed)
		if n > len(b) || n > size {
			return out, false, nil
		}
		if head&lz4Uncompressed != 0 {
			out = append(out, b[:n]...)
		} else {
			var window []byte
			if flags&lz4Independent == 0 {
				window = out[max(0, len(out)-lz4Window):]
			}
			// Frames name the largest size that a block may have, which is most often far more than it has.
			room, got := min(size, lz4Guess*n), 0
			for {
				for cap(out)-len(out) < room {
					out = append(out[:cap(out)], 0)[:len(out)]
				}
				room = min(cap(out)-len(out), size)
				var err error
				if got, err = lz4.UncompressBlockWithDict(b[:n], out[len(out):len(out)+room], window); err == nil {
					break
				}
				if room == size {
					return nil, true, fmt.Errorf("%w: lz4: %w", errCorrupt, err)
				}
				room = min(2*room, size)
			}
			out = out[:len(out)+got]
		}
		if len(out) > maxBatchBytes {
			return nil, true, fmt.Errorf("%w: more than %d MiB decompressed", errTooLarge, maxBatchBytes>>20)
		}
		if b = b[n:]; flags&lz4BlockChecksum != 0 {
			if len(b) < 4 {
				return out, false, nil
			}
			b = b[4:]
		}
	}
	if flags&lz4Checksum != 0 {
		if len(b) < 4 {
			return out, false, nil
		}
		b = b[4:]
	}
	return out, len(b) == 0, nil
}
