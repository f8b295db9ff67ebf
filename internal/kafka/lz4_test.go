package kafka

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// Frames of every make are read as the library reads them; a broken one is never taken for a whole one.
func TestLZ4Frames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	texts := map[string][]byte{"empty": {}, "short": []byte("short"), "noise": noise, "far matches": append(bytes.Clone(noise[:60_000]), noise[:200_000]...),
		"long": bytes.Repeat([]byte("a line of a log that repeats, "), 40_000)}
	options := map[string][]lz4.Option{
		"default":         nil,
		"64 KiB":          {lz4.BlockSizeOption(lz4.Block64Kb)},
		"1 MiB":           {lz4.BlockSizeOption(lz4.Block1Mb), lz4.BlockChecksumOption(true)},
		"size":            {lz4.ChecksumOption(false)},
		"high":            {lz4.CompressionLevelOption(lz4.Level9), lz4.BlockSizeOption(lz4.Block256Kb)},
		"block checksums": {lz4.BlockChecksumOption(true), lz4.ChecksumOption(true)},
	}
	for name, text := range texts {
		for option, o := range options {
			var buf bytes.Buffer
			w := lz4.NewWriter(&buf)
			if option == "size" {
				o = append(o, lz4.SizeOption(uint64(len(text))))
			}
			if err := w.Apply(o...); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(text); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			frame := buf.Bytes()
			got, ok, err := lz4Frame(frame, make([]byte, 0, 100))
			if !ok || err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s, %s: %d bytes of %d, %v, %v", name, option, len(got), len(text), ok, err)
			}
			for _, cut := range []int{1, 4, 5, len(frame) / 2, len(frame) - 7} {
				if cut > len(frame) {
					continue
				}
				if _, ok, err := lz4Frame(frame[:len(frame)-cut], nil); ok && err == nil {
					t.Errorf("%s, %s: a frame without its last %d bytes is taken for whole", name, option, cut)
				}
			}
			if _, ok, err := lz4Frame(append(bytes.Clone(frame), frame...), nil); ok && err == nil {
				t.Errorf("%s, %s: two frames are taken for one", name, option)
			}
		}
	}
}

// Blocks that refer to the ones before them are what librdkafka can be told to write. The library's writer does not.
func TestLZ4LinkedBlocks(t *testing.T) {
	first := bytes.Repeat([]byte("0123456789abcdefghij"), 3_200) // of 64,000 bytes
	var c lz4.Compressor
	block := make([]byte, lz4.CompressBlockBound(len(first)))
	n, err := c.CompressBlock(first, block)
	if err != nil {
		t.Fatal(err)
	}
	le := func(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }
	frame := append([]byte{0x04, 0x22, 0x4d, 0x18, lz4Version, 4 << lz4BlockSizeShift, 0}, le(n)...)
	frame = append(frame, block[:n]...)
	// No literal, a match of 19 bytes 64,000 bytes back, then five literals, as the format wants at an end.
	second := []byte{0x0f, 0x00, 0xfa, 0x00, 0x50, 'e', 'n', 'd', '.', '.'}
	frame = append(append(append(frame, le(len(second))...), second...), le(0)...)
	got, ok, err := lz4Frame(frame, nil)
	want := append(append(bytes.Clone(first), first[:19]...), "end.."...)
	if !ok || err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v, %v", len(got), ok, err)
	}
}

func FuzzLZ4Frame(f *testing.F) {
	var buf bytes.Buffer
	w := lz4.NewWriter(&buf)
	w.Write(bytes.Repeat([]byte("abcdefg"), 1000))
	w.Close()
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok, err := lz4Frame(b, nil)
		if ok && err == nil && len(got) > maxBatchBytes {
			t.Errorf("%d bytes", len(got))
		}
	})
}
