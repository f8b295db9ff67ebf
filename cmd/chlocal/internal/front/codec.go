package front

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	chcompress "github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// decode undoes the request's Content-Encoding and, with decompress=1, ClickHouse's own frames (lz4, zstd).
func decode(r *http.Request, query url.Values) (io.ReadCloser, error) {
	body := io.NopCloser(r.Body)
	var err error
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		body, err = gzip.NewReader(r.Body)
	case "deflate":
		body, err = zlib.NewReader(r.Body)
	case "br":
		body = io.NopCloser(brotli.NewReader(r.Body))
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(r.Body); err == nil {
			body = z.IOReadCloser()
		}
	}
	if err != nil {
		return nil, decompressError(err)
	}
	if query.Get("decompress") == "1" {
		return struct {
			io.Reader
			io.Closer
		}{frameReader{chcompress.NewReader(body)}, body}, nil
	}
	return body, nil
}

// frameReader gives the end of the last frame as plain io.EOF; ch-go wraps it.
type frameReader struct{ io.Reader }

func (f frameReader) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// output writes a response in the encoding that the client asked for.
type output struct {
	io.Writer
	close func() error
}

// frameMaxBytes bounds a compressed frame, which both sides hold in memory.
const frameMaxBytes = 1 << 20

// newOutput sets the response's headers; nothing is written before the first Write or Close.
func newOutput(w http.ResponseWriter, r *http.Request, query url.Values) *output {
	if query.Get("compress") == "1" {
		method, level := chcompress.LZ4, 0
		if strings.EqualFold(query.Get("network_compression_method"), "ZSTD") {
			method = chcompress.ZSTD
			level, _ = strconv.Atoi(query.Get("network_zstd_compression_level")) // 0 is the default level
		}
		return &output{Writer: &frameWriter{w, chcompress.NewWriter(chcompress.Level(level), method)}, close: func() error { return nil }}
	}
	if query.Get("enable_http_compression") == "0" {
		return &output{Writer: w, close: func() error { return nil }}
	}
	for _, accepted := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(accepted), ";")
		var enc io.WriteCloser
		switch name {
		case "gzip":
			enc = gzip.NewWriter(w)
		case "deflate":
			enc = zlib.NewWriter(w)
		case "br":
			enc = brotli.NewWriterLevel(w, 3)
		case "zstd":
			z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
			if err != nil {
				continue
			}
			enc = z
		default:
			continue
		}
		w.Header().Set("Content-Encoding", name)
		return &output{Writer: enc, close: enc.Close}
	}
	return &output{Writer: w, close: func() error { return nil }}
}

// frameWriter writes ClickHouse's compressed frames.
type frameWriter struct {
	w io.Writer
	c *chcompress.Writer
}

func (f *frameWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		chunk := p[:min(len(p), frameMaxBytes)]
		if err := f.c.Compress(chunk); err != nil {
			return n, err
		}
		if _, err := f.w.Write(f.c.Data); err != nil {
			return n, err
		}
		n, p = n+len(chunk), p[len(chunk):]
	}
	return n, nil
}
