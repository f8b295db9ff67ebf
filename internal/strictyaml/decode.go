package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of one document. They are far above what people write and below what harms a process: aliases can make a
// file of a kilobyte expand to gigabytes.
const (
	MaxBytes = 8 << 20
	MaxDepth = 100
	MaxNodes = 1 << 20 // after expansion of aliases
)

// Unmarshaler is implemented by types that need more than tags say. The node is never an alias and never null. Errors
// without a place get the node's; DecodeNode inside it decodes a part as Decode would.
type Unmarshaler interface {
	UnmarshalStrict(n *yaml.Node) error
}

// Defaulter sets the values of keys that a file leaves out; it is called on a struct before its keys are decoded.
type Defaulter interface {
	SetDefaults()
}

// Decode reads the only document of data into a pointer and gives all mistakes as Errors. file is only a name for
// messages. What into holds for keys that the document leaves out is kept, so that defaults can be set beforehand;
// after an error its content is undefined. An empty document is an empty mapping.
func Decode(file string, data []byte, into any) error {
	root, err := parse(file, data)
	if err != nil {
		return Errors{err}
	}
	if err := stamp(file, root); err != nil {
		return Errors{err}
	}
	return decodeNode(root, into, "the document")
}

// DecodeNode decodes a node that came from Decode: one given to an Unmarshaler or kept in a field of type yaml.Node.
func DecodeNode(n *yaml.Node, into any) error { return decodeNode(n, into, "this value") }

func decodeNode(n *yaml.Node, into any, what string) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("strictyaml: cannot decode into %T: not a pointer to something", into)
	}
	var d decoder
	d.value(n, v.Elem(), what)
	return d.errs.Err()
}

// PosOf is the place of a node that came from Decode.
func PosOf(n *yaml.Node) Pos { return Pos{File: n.FootComment, Line: n.Line, Col: n.Column} }

// parse gives the content node of the only document; a null node stands for an empty one.
func parse(file string, data []byte) (*yaml.Node, *Error) {
	if len(data) > MaxBytes {
		return nil, &Error{File: file, Line: 1, Col: 1, Msg: fmt.Sprintf("the file has %d bytes, %d at most are read", len(data), MaxBytes)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1, Column: 1}, nil
	case err != nil:
		return nil, syntaxError(file, data, err)
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntaxError(file, data, err)
	default:
		return nil, &Error{File: file, Line: second.Line, Col: second.Column, Msg: "a second document begins here", Hint: "one document a file"}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &Error{File: file, Line: 1, Col: 1, Msg: "this is not a YAML document"}
	}
	return doc.Content[0], nil
}

var (
	atLine = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)
	// The parser counts lines from 0 in the errors of its grammar, and from 1 in those of its scanner.
	grammar = regexp.MustCompile(`^(did not find expected (node content|key|'-' indicator|',' or |<)|found (undefined tag handle|duplicate %|incompatible))`)

	unknownAnchor = regexp.MustCompile(`(?s)^unknown anchor '(.*)' referenced$`)
)

// syntaxError takes the line out of the parser's text. The parser names unknown anchors; such a name may be an
// unquoted password that begins with an asterisk, so it is looked up but not repeated.
func syntaxError(file string, data []byte, err error) *Error {
	e := &Error{File: file, Line: 1, Col: 1, Msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := atLine.FindStringSubmatch(e.Msg); m != nil {
		if line, convErr := strconv.Atoi(m[1]); convErr == nil && line > 0 {
			e.Line = line
		}
		if e.Msg = m[2]; grammar.MatchString(e.Msg) {
			e.Line++
		}
	}
	if m := unknownAnchor.FindStringSubmatch(e.Msg); m != nil {
		if at := bytes.Index(data, []byte("*"+m[1])); at >= 0 {
			e.Line = 1 + bytes.Count(data[:at], []byte("\n"))
			e.Col = at - bytes.LastIndexByte(data[:at], '\n')
		}
		e.Msg = "an alias (*name) without its anchor (&name)"
		e.Hint = "put a text that begins with * in quotes"
	}
	return e
}

// stamp refuses what is too deep or expands to too much, and writes the file's name into each node. The comment
// fields of nodes are free, as nothing here prints YAML; without this, a node handed to an Unmarshaler would have
// forgotten its file, and the places it hands on would be incomplete.
func stamp(file string, root *yaml.Node) *Error {
	s := stamper{file: file, sizes: map[*yaml.Node]int{}, heights: map[*yaml.Node]int{}}
	return s.visit(root, 1)
}

type stamper struct {
	file           string
	sizes, heights map[*yaml.Node]int // a size of 0 marks a node that is being visited
}

func (s *stamper) visit(n *yaml.Node, depth int) *Error {
	n.HeadComment, n.LineComment, n.FootComment = "", "", s.file
	if depth > MaxDepth {
		return PosOf(n).Errorf("nesting is deeper than %d", MaxDepth)
	}
	s.sizes[n] = 0
	size, height := 1, 0
	children := n.Content
	if n.Kind == yaml.AliasNode {
		children = []*yaml.Node{n.Alias}
	}
	for _, child := range children {
		known, seen := s.sizes[child]
		if seen && known == 0 {
			return PosOf(n).Errorf("an anchor contains itself")
		}
		if !seen {
			if err := s.visit(child, depth+1); err != nil {
				return err
			}
		}
		size += s.sizes[child]
		height = max(height, s.heights[child]+1)
		if size > MaxNodes {
			return PosOf(n).Errorf("the document has more than %d nodes, aliases expanded", MaxNodes)
		}
		if depth+height > MaxDepth {
			return PosOf(n).Errorf("nesting is deeper than %d, aliases expanded", MaxDepth)
		}
	}
	s.sizes[n], s.heights[n] = size, height
	return nil
}
