package outbox

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tocsin-project/tocsin/internal/respond"
)

const (
	fileName     = "outbox.wal"
	magic        = "tocsin outbox 1\n"
	maxKey       = 4 << 10
	maxValue     = 4 << 20
	compactAfter = 1 << 20 // bytes of garbage below which the file is left alone
	headerSize   = 12      // crc, key length, value length
	tombstone    = ^uint32(0)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrInUse says that another process has the folder open.
var ErrInUse = errors.New("another process uses this outbox")

// WAL is a write-ahead file: each Put is on disk before it returns. A torn end, as a crash leaves it, is cut off; what
// was acknowledged before it is kept. The file is rewritten when more than half of it is garbage.
type WAL struct {
	dir  string
	lock *os.File

	mu   sync.Mutex
	file *os.File
	live map[string][]byte
	size int64
	used int64 // bytes of entries that still count
	err  error // after a failed write or sync the end of the file is unknown, so the file is rewritten first
}

var _ respond.Store = (*WAL)(nil)

// OpenWAL opens or creates the file in dir and locks the folder for this process.
func OpenWAL(dir string) (*WAL, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	if err := lockFile(lock); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("open the outbox in %s: %w", dir, ErrInUse)
	}
	w := &WAL{dir: dir, lock: lock, live: map[string][]byte{}}
	if err := w.open(); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("open the outbox in %s: %w", dir, err)
	}
	return w, nil
}

func (w *WAL) open() error {
	_ = os.Remove(filepath.Join(w.dir, fileName+".new")) // left by a crash while rewriting
	f, err := os.OpenFile(filepath.Join(w.dir, fileName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	good, err := w.replay(f)
	if err != nil {
		_ = f.Close()
		return err
	}
	if good == 0 {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(magic), 0)
		}
		good = int64(len(magic))
	} else {
		err = f.Truncate(good)
	}
	if err == nil {
		_, err = f.Seek(good, io.SeekStart)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDir(w.dir)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	w.file, w.size = f, good
	return nil
}

// replay reads entries up to the first that is torn and returns where that is; 0 for a file that has not even its head.
func (w *WAL) replay(f *os.File) (int64, error) {
	r := bufio.NewReader(f)
	start := make([]byte, len(magic))
	switch n, err := io.ReadFull(r, start); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && string(start[:n]) == magic[:n]:
		return 0, nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0, err
	case string(start) != magic:
		return 0, fmt.Errorf("%s is not an outbox of this version", f.Name())
	}
	good := int64(len(magic))
	header := make([]byte, headerSize)
	for {
		if _, err := io.ReadFull(r, header); err != nil {
			return good, ignoreEOF(err)
		}
		keyLen, valueLen := binary.LittleEndian.Uint32(header[4:]), binary.LittleEndian.Uint32(header[8:])
		dead := valueLen == tombstone
		if dead {
			valueLen = 0
		}
		if keyLen > maxKey || valueLen > maxValue {
			return good, nil
		}
		body := make([]byte, keyLen+valueLen)
		if _, err := io.ReadFull(r, body); err != nil {
			return good, ignoreEOF(err)
		}
		if checksum(header, body) != binary.LittleEndian.Uint32(header) {
			return good, nil
		}
		w.apply(string(body[:keyLen]), body[keyLen:], dead)
		good += int64(headerSize + len(body))
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func checksum(header, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[4:], castagnoli), castagnoli, body)
}

func (w *WAL) apply(key string, value []byte, dead bool) {
	if old, ok := w.live[key]; ok {
		w.used -= int64(headerSize + len(key) + len(old))
		delete(w.live, key)
	}
	if !dead {
		w.live[key] = value
		w.used += int64(headerSize + len(key) + len(value))
	}
}

// Load gives all values.
func (w *WAL) Load(context.Context) (map[string][]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.live), nil
}

// Put writes one value and waits for the disk. A nil value forgets the key.
func (w *WAL) Put(_ context.Context, key string, value []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return errors.New("write the outbox: it is closed")
	}
	if len(key) > maxKey || len(value) > maxValue {
		return fmt.Errorf("write the outbox: an entry of %d+%d bytes is too large", len(key), len(value))
	}
	if _, known := w.live[key]; value == nil && !known {
		return nil
	}
	before, hadBefore := w.live[key]
	w.apply(key, slices.Clone(value), value == nil)
	err := w.err
	if err == nil {
		err = w.append(key, value)
	}
	if err != nil || w.size-w.used > max(compactAfter, w.used) {
		err = w.compact() // a fresh file holds the new entry as well
	}
	if err != nil {
		w.err = err
		w.apply(key, before, !hadBefore)
		return fmt.Errorf("write the outbox: %w", err)
	}
	w.err = nil
	return nil
}

func (w *WAL) append(key string, value []byte) error {
	entry := encode(key, value)
	if _, err := w.file.Write(entry); err != nil {
		return err
	}
	w.size += int64(len(entry))
	return w.file.Sync()
}

func encode(key string, value []byte) []byte {
	entry := make([]byte, headerSize, headerSize+len(key)+len(value))
	binary.LittleEndian.PutUint32(entry[4:], uint32(len(key)))
	binary.LittleEndian.PutUint32(entry[8:], uint32(len(value)))
	if value == nil {
		binary.LittleEndian.PutUint32(entry[8:], tombstone)
	}
	entry = append(append(entry, key...), value...)
	binary.LittleEndian.PutUint32(entry, checksum(entry[:headerSize], entry[headerSize:]))
	return entry
}

// compact writes a new file beside the old one and swaps them; a crash on the way leaves one of the two whole.
func (w *WAL) compact() error {
	path := filepath.Join(w.dir, fileName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(f)
	size := int64(len(magic))
	_, err = buf.WriteString(magic)
	for _, key := range slices.Sorted(maps.Keys(w.live)) {
		if err != nil {
			break
		}
		entry := encode(key, w.live[key])
		size += int64(len(entry))
		_, err = buf.Write(entry)
	}
	if err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	_ = w.file.Close()
	w.file, w.size = f, size
	return syncDir(w.dir)
}

// Close releases file and lock. It may be called twice.
func (w *WAL) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := errors.Join(w.file.Close(), w.lock.Close())
	w.file = nil
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
