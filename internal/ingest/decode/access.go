package decode

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// call is what is known of a request before it has a path.
type call struct {
	service, name string
	method        string // HTTP method, "" if unknown
	rpc           string // RPC method, "" if it is none
	graphql       string // GraphQL's operation type, "" if it is none
	messaging     bool
}

type naming struct {
	operation string
	access    signal.Access
	routed    bool // a route says the access
}

// namer finds the operation and access of requests. The answers are kept: they depend on few words, and routes are
// slow to match.
type namer struct {
	ids     bool // whether they collapse
	routes  []pipeline.Route
	methods []string
	verbs   []string
	known   map[call]naming
}

const maxNamings = 1 << 14

func newNamer(r *pipeline.Requests) *namer {
	return &namer{ids: r.CollapseIDs, routes: r.Routes, methods: r.Reads.Methods, verbs: r.Reads.Verbs, known: map[call]naming{}}
}

func (n *namer) of(c call) naming {
	if got, ok := n.known[c]; ok {
		return got
	}
	if len(n.known) >= maxNamings {
		clear(n.known)
	}
	key := c
	// Keys are kept: they must not hold on to the record's memory.
	key.service, key.name, key.rpc = strings.Clone(c.service), strings.Clone(c.name), strings.Clone(c.rpc)
	got := n.find(key)
	n.known[key] = got
	return got
}

func (n *namer) find(c call) naming {
	out := naming{operation: c.name, access: n.access(c)}
	if n.ids {
		out.operation = pipeline.CollapseIDs(c.name)
	}
	for _, r := range n.routes {
		if !r.Service.Match(c.service) || !r.Match.Match(c.name) && (c.method == "" || !r.Match.Match(c.method+" "+c.name)) {
			continue
		}
		if r.Operation != "" {
			out.operation = r.Operation
		}
		if r.Access != nil {
			out.access, out.routed = *r.Access, true
		}
		break
	}
	return out
}

// access tells reads from writes: GraphQL by its operation type, because all of it is POST; then the verb of an RPC,
// for the same reason; then the HTTP method; without any of these the first word of the name. Messages are writes.
func (n *namer) access(c call) signal.Access {
	read := false
	switch {
	case c.graphql != "":
		read = strings.EqualFold(c.graphql, "query") || strings.EqualFold(c.graphql, "subscription")
	case c.messaging:
	case c.rpc != "" && n.readVerb(c.rpc):
		read = true
	case c.method != "":
		read = slices.Contains(n.methods, strings.ToUpper(c.method))
	case c.rpc == "":
		read = n.readVerb(c.name)
	}
	if read {
		return signal.Read
	}
	return signal.Write
}

// readVerb tells whether the last part of a name begins with a verb of reading: pkg.Users/GetUser, list_orders.
func (n *namer) readVerb(name string) bool {
	name = name[strings.LastIndexAny(name, "/.:")+1:]
	for _, v := range n.verbs {
		if len(name) < len(v) || !strings.EqualFold(name[:len(v)], v) {
			continue
		}
		// Getaway and listen are no verbs of reading.
		if r, _ := utf8.DecodeRuneInString(name[len(v):]); len(name) == len(v) || !unicode.IsLower(r) {
			return true
		}
	}
	return false
}

var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY"}

// splitMethod takes the method off a name such as "GET /users/{id}", the form of span names of HTTP servers.
func splitMethod(name string) (method, rest string) {
	first, rest, ok := strings.Cut(name, " ")
	if ok && rest != "" && slices.Contains(httpMethods, first) {
		return first, rest
	}
	return "", name
}
