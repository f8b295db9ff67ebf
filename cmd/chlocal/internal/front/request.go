package front

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strings"

	"github.com/tocsin-project/tocsin/cmd/chlocal/internal/engine"
)

// statementMaxBytes bounds the SQL of a request, with the rows that stand in it. Data bodies have a bound of their own.
const statementMaxBytes = 64 << 20

// request is one HTTP request in the engine's terms.
type request struct {
	query url.Values

	text         []byte // the statement, without its data
	masked       []byte // text without the content of literals and comments, same offsets
	data         *memfile
	inputFormat  string // of data
	outputFormat string

	database string
	reader   bool
	settings []setting
	params   []engine.Param
	tables   []externalTable
}

type setting struct{ name, value string }

// externalTable is a table that came with the request and lives as long as its connection.
type externalTable struct {
	name, structure, format string
	data                    *memfile
}

func (r *request) close() {
	r.data.close()
	for _, t := range r.tables {
		t.data.close()
	}
}

// transport names the URL parameters that are not settings.
var transport = map[string]bool{
	"query": true, "database": true, "default_format": true, "compress": true, "decompress": true, "user": true,
	"password": true, "quota_key": true, "query_id": true, "stacktrace": true, "role": true, "buffer_size": true,
	"wait_end_of_query": true, "client_protocol_version": true, "enable_http_compression": true,
	"http_native_compression_disable_checksumming_on_decompress": true, "network_compression_method": true,
	"network_zstd_compression_level": true,
}

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// parse reads the whole request. On success the caller closes the result.
func (f *Front) parse(r *http.Request, query url.Values) (_ *request, err error) {
	if query.Get("session_id") != "" {
		return nil, engine.NewError(engine.CodeNotImplemented, "NOT_IMPLEMENTED", "chlocal has no sessions (session_id)")
	}
	req := &request{query: query, database: query.Get("database"), outputFormat: query.Get("default_format")}
	defer func() {
		if err != nil {
			req.close()
			err = readError(err)
		}
	}()
	if req.database == "" {
		if req.database = r.Header.Get("X-ClickHouse-Database"); req.database == "" {
			req.database = f.opts.Database
		}
	}
	if req.outputFormat == "" {
		if req.outputFormat = r.Header.Get("X-ClickHouse-Format"); req.outputFormat == "" {
			req.outputFormat = "TabSeparated"
		}
	}
	if !namePattern.MatchString(req.outputFormat) {
		return nil, engine.NewError(engine.CodeBadArguments, "BAD_ARGUMENTS", "bad format name")
	}
	// As in ClickHouse, GET only reads.
	req.reader = r.Method == http.MethodGet || user(r, query) == f.opts.Reader
	var body io.Reader
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		text, err := req.readMultipart(r, f.opts.BodyMaxBytes)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	} else {
		decoded, err := decode(r, query)
		if err != nil {
			return nil, err
		}
		defer decoded.Close()
		body = decoded
	}
	if err := req.readSettings(); err != nil {
		return nil, err
	}
	return req, req.readStatement(body, f.opts.BodyMaxBytes)
}

// readStatement splits SQL from the data of an INSERT. With ?query=… the body is data, or the rest of the SQL;
// without it the body holds both.
func (r *request) readStatement(body io.Reader, bodyMax int64) error {
	r.text = []byte(r.query.Get("query"))
	r.masked = mask(r.text)
	if at, format, ok := insertData(r.masked); ok {
		inline := r.text[at.end:]
		body = io.MultiReader(bytes.NewReader(inline), body)
		return r.takeData(at, format, body, bodyMax)
	}
	rest, err := io.ReadAll(io.LimitReader(body, statementMaxBytes+1))
	if err != nil {
		return fmt.Errorf("read the request's body: %w", err)
	}
	if len(rest) > statementMaxBytes {
		return errTooLarge
	}
	if len(r.text) > 0 && len(rest) > 0 {
		r.text = append(r.text, '\n')
	}
	r.text = append(r.text, rest...)
	r.masked = mask(r.text)
	if at, format, ok := insertData(r.masked); ok {
		return r.takeData(at, format, bytes.NewReader(r.text[at.end:]), bodyMax)
	}
	r.text = bytes.TrimSpace(r.text)
	r.masked = mask(r.text)
	return nil
}

func (r *request) takeData(at span, format string, data io.Reader, bodyMax int64) (err error) {
	r.text, r.masked, r.inputFormat = r.text[:at.start], r.masked[:at.start], format
	r.data, err = newMemfile(data, bodyMax)
	return err
}

func (r *request) readSettings() error {
	for name := range r.query {
		value := r.query.Get(name)
		switch {
		case strings.HasPrefix(name, "param_"):
			r.params = append(r.params, engine.Param{Name: strings.TrimPrefix(name, "param_"), Value: value})
		case transport[name]:
		case !namePattern.MatchString(name):
			return engine.NewError(engine.CodeUnknownSetting, "UNKNOWN_SETTING", fmt.Sprintf("bad setting name %q", name))
		default:
			if name == "readonly" && value != "0" {
				r.reader = true
			}
			r.settings = append(r.settings, setting{name, value})
		}
	}
	sort.Slice(r.settings, func(i, j int) bool { return r.settings[i].name < r.settings[j].name })
	return nil
}

// readMultipart takes external tables out of a form: a part a table, its structure and format in the URL. The part
// called query is the statement.
func (r *request) readMultipart(req *http.Request, bodyMax int64) (text []byte, err error) {
	parts, err := req.MultipartReader()
	if err != nil {
		return nil, fmt.Errorf("read the form: %w", err)
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the form: %w", err)
		}
		name := part.FormName()
		if name == "query" {
			b, err := io.ReadAll(io.LimitReader(part, statementMaxBytes))
			if err != nil {
				return nil, fmt.Errorf("read the form: %w", err)
			}
			text = append(text, b...)
			continue
		}
		t := externalTable{name: name, structure: r.query.Get(name + "_structure"), format: r.query.Get(name + "_format")}
		if t.format == "" {
			t.format = "TabSeparated"
		}
		if !namePattern.MatchString(t.name) || !namePattern.MatchString(t.format) || t.structure == "" {
			return nil, engine.NewError(engine.CodeBadArguments, "BAD_ARGUMENTS", fmt.Sprintf("external table %q needs a name, a structure and a format", name))
		}
		r.query.Del(name + "_structure")
		r.query.Del(name + "_format")
		if t.data, err = newMemfile(part, bodyMax); err != nil {
			return nil, err
		}
		r.tables = append(r.tables, t)
	}
}

func user(r *http.Request, query url.Values) string {
	if u := query.Get("user"); u != "" {
		return u
	}
	if u := r.Header.Get("X-ClickHouse-User"); u != "" {
		return u
	}
	u, _, _ := r.BasicAuth()
	return u
}
