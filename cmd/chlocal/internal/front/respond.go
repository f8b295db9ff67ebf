package front

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	chcompress "github.com/ClickHouse/ch-go/compress"

	"github.com/tocsin-project/tocsin/cmd/chlocal/internal/engine"
)

// insert runs an INSERT on the data of the request.
func (f *Front) insert(w http.ResponseWriter, req *request, c *engine.Conn) error {
	if req.data.size == 0 {
		return nil
	}
	var sql []byte
	if in := inputPattern.FindIndex(req.masked); in != nil { // INSERT … SELECT … FROM input('structure')
		sql = append(sql, req.text[:in[0]]...)
		sql = fmt.Appendf(sql, "file(%s, %s, ", engine.QuoteString(req.data.path), engine.QuoteString(req.inputFormat))
		sql = append(sql, req.text[in[1]:]...)
	} else {
		sql = append(sql, req.text...)
		sql = fmt.Appendf(sql, " FROM INFILE %s FORMAT %s", engine.QuoteString(req.data.path), req.inputFormat)
	}
	return c.Query(sql, "Null", req.params, func(_ []byte, s engine.Summary) error {
		summarise(w, s)
		return nil
	})
}

// holdMaxBytes of output are held back before the response begins, as in ClickHouse, so that a statement that fails
// early is answered with a status and not with 200 and an exception in the body.
const holdMaxBytes = 1 << 20

// writeMax is how long a client may take for one piece of a result.
const writeMax = 5 * time.Minute

// stream sends a SELECT's output as it comes. sent says whether the response has begun; an error after that is in the
// response's body, as the exception frame that clients look for. reusable says whether the connection saw no error.
func (f *Front) stream(w http.ResponseWriter, r *http.Request, req *request, c *engine.Conn) (sent, reusable bool, err error) {
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // it would hold for the connection's next request
	var out *output
	var held []byte
	tag := rand.Text()[:16]
	begin := func() error {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("X-ClickHouse-Format", req.outputFormat)
		w.Header().Set("X-ClickHouse-Exception-Tag", tag)
		out = newOutput(w, r, req.query)
		_, err := out.Write(held)
		held = nil
		return err
	}
	err = c.Stream(r.Context(), req.text, req.outputFormat, req.params, func(chunk []byte) error {
		if out == nil && len(held)+len(chunk) <= holdMaxBytes {
			held = append(held, chunk...)
			return nil
		}
		if out == nil {
			if err := begin(); err != nil {
				return err
			}
		}
		// A client that does not read for so long is stuck; it would hold the query and its locks for ever.
		_ = control.SetWriteDeadline(time.Now().Add(writeMax))
		_, err := out.Write(chunk)
		return err
	})
	reusable = err == nil
	if out == nil {
		if err != nil {
			return false, false, err
		}
		if len(held) == 0 && req.outputFormat == "Native" {
			held, reusable = emptyBlock(c, req)
		}
		_ = begin() // its error, like those below, means that the client is gone
	}
	if err != nil && r.Context().Err() == nil {
		text := clientText(err, f.engine.Version())
		frame := fmt.Appendf(nil, "\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", tag, text, len(text)+1, tag)
		if fw, ok := out.Writer.(*frameWriter); ok {
			// Uncompressed, because clients search the raw response for the marker.
			fw.c = chcompress.NewWriter(0, chcompress.None)
		}
		_, _ = out.Write(frame)
	}
	_ = out.close()
	return true, reusable, err
}

// emptyBlock makes the block without rows by which a server tells the columns of an empty result; the engine writes
// nothing then. What cannot be described, as a statement with its own FORMAT, stays without columns.
func emptyBlock(c *engine.Conn, req *request) (block []byte, ok bool) {
	statement := "DESCRIBE TABLE (" + strings.TrimRight(string(req.text), "; \t\r\n") + "\n)"
	err := c.Query([]byte(statement), "JSONCompactStringsEachRow", req.params, func(out []byte, s engine.Summary) error {
		block = binary.AppendUvarint(block, s.ResultRows)
		block = append(block, 0) // rows
		for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
			var column []string // name, type, …
			if err := d.Decode(&column); err != nil {
				return err
			}
			for _, text := range column[:2] {
				block = append(binary.AppendUvarint(block, uint64(len(text))), text...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, false
	}
	return block, true
}

// respond sends a whole output.
func respond(w http.ResponseWriter, r *http.Request, req *request, output []byte) error {
	if len(output) == 0 {
		return nil
	}
	out := newOutput(w, r, req.query)
	if _, err := out.Write(output); err == nil {
		_ = out.close()
	}
	return nil // a client that is gone is no error of the statement
}

func summarise(w http.ResponseWriter, s engine.Summary) {
	b, _ := json.Marshal(map[string]string{
		"read_rows": strconv.FormatUint(s.ReadRows, 10), "read_bytes": strconv.FormatUint(s.ReadBytes, 10),
		"written_rows": strconv.FormatUint(s.WrittenRows, 10), "written_bytes": strconv.FormatUint(s.WrittenBytes, 10),
		"result_rows": strconv.FormatUint(s.ResultRows, 10),
	})
	w.Header().Set("X-ClickHouse-Summary", string(b))
}

var errTooLarge = engine.NewError(engine.CodeTooLarge, "TOO_MANY_BYTES", "the request's body is too large")

func decompressError(err error) error {
	return engine.NewError(engine.CodeCannotDecompress, "CANNOT_DECOMPRESS", "cannot decompress the request: "+err.Error())
}

// readError gives an error while reading the request the code that a client understands.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	var known *engine.Error
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge
	case errors.As(err, &known):
		return err
	default:
		return engine.NewError(engine.CodeBadArguments, "BAD_ARGUMENTS", "cannot read the request: "+err.Error())
	}
}

func (f *Front) fail(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) {
		return // nobody listens
	}
	code := engine.CodeUnknown
	var e *engine.Error
	if errors.As(err, &e) {
		code = e.Code
	}
	h := w.Header()
	h.Del("Content-Encoding")
	h.Del("X-ClickHouse-Summary")
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	if e != nil && e.Name != "" {
		h.Set("X-ClickHouse-Exception-Name", e.Name)
	}
	w.WriteHeader(status(code))
	io.WriteString(w, clientText(err, f.engine.Version())+"\n")
}

func clientText(err error, version string) string {
	var e *engine.Error
	if !errors.As(err, &e) {
		e = engine.NewError(engine.CodeUnknown, "UNKNOWN_EXCEPTION", err.Error())
	}
	return e.Text + " (version " + version + " (chlocal))"
}

// status maps exception codes as ClickHouse's HTTP handler does.
func status(code int) int {
	switch code {
	case 60, 81, 46, 47: // unknown table, database, function, identifier
		return http.StatusNotFound
	case 497, 516, 192, 164: // access denied, readonly
		return http.StatusForbidden
	case 159, 160: // timed out
		return http.StatusRequestTimeout
	case engine.CodeNotImplemented:
		return http.StatusNotImplemented
	case engine.CodeAborted:
		return http.StatusServiceUnavailable
	case engine.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case 62, 36, 43, 53, 27, 6, 26, 33, 117, 115, 271: // syntax, arguments, types, parsing
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}
