package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tocsin-project/tocsin/internal/scenario/wire"
)

// workload is a number of spans and what they are like. The same workload is the same bytes.
type workload struct {
	Name     string
	Spans    int
	Services int
	Routes   int
	Skewed   bool    // few routes have most of the requests
	Rate     float64 // spans a second of event time
	Failing  float64 // share
	Message  int     // spans of one
	Poison   int     // one broken record for so many, 0 for none
}

// workloads are what is measured. Live is a stream that is as dense as the machine is fast, sparse the same spans of a
// slower world, so that a batch holds few spans a row; cells has about 20,000 active cells a bucket; poison is live with
// broken records between.
var workloads = []workload{
	{Name: "live", Services: 30, Routes: 400, Skewed: true, Rate: 200_000, Failing: 0.003, Message: 300},
	{Name: "sparse", Services: 30, Routes: 400, Skewed: true, Rate: 5_000, Failing: 0.003, Message: 300},
	{Name: "cells", Services: 30, Routes: 3600, Rate: 200_000, Failing: 0.003, Message: 300},
	{Name: "poison", Services: 30, Routes: 400, Skewed: true, Rate: 200_000, Failing: 0.003, Message: 300, Poison: 100},
}

// pathKey is what the truth is kept by.
type pathKey struct{ Service, Route, Method, Region string }

type counts struct{ Total, Failed int64 }

type truth map[pathKey]counts

type route struct {
	template string
	methods  []string
}

type pod struct {
	service          int
	region, resource string // resource is the encoded field
	server           string
}

var (
	nouns   = strings.Fields("orders carts items users payments refunds invoices sessions tokens products prices stock shipments returns reviews coupons wallets accounts addresses devices alerts reports exports uploads images messages threads searches recommendations subscriptions")
	parts   = strings.Fields("lines status history notes events limits settings members approvals attachments")
	regions = []string{"eu-west-1", "us-east-1", "ap-southeast-2"}
	agents  = []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
		"okhttp/4.12.0", "Go-http-client/2.0", "python-requests/2.32.3", "Dart/3.5 (dart:io)", "axios/1.7.7",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
	}
	created  = []int64{201, 200, 202, 204}
	broken   = []int64{500, 503, 504, 502}
	mistaken = []int64{400, 401, 404, 409, 429}
)

const (
	pods     = 180
	accounts = 50_000
)

// world is what a workload's spans come from.
type world struct {
	w      workload
	r      *rand.Rand
	routes [][]route // by service
	pods   []pod
	scope  []byte
	start  int64 // Unix nanoseconds of the first span
	done   int
	truth  truth
	span   []byte
	spans  []byte
}

func newWorld(w workload, start int64) *world {
	g := &world{w: w, r: rand.New(rand.NewPCG(1, 0x5eed)), start: start, truth: truth{}, routes: make([][]route, w.Services)}
	for i := range w.Routes {
		noun := nouns[i%len(nouns)]
		one := strings.TrimSuffix(noun, "s")
		t := fmt.Sprintf("/api/v%d/%s", 1+i%2, noun)
		switch (i / 30) % 4 {
		case 1:
			t += "/{" + one + "_id}"
		case 2:
			t += "/{" + one + "_id}/" + parts[i%len(parts)]
		case 3:
			t += "/{" + one + "_id}/" + parts[i%len(parts)] + "/{sub_id}"
		}
		if i >= 120 {
			t += fmt.Sprint("/", parts[i%len(parts)], i/120)
		}
		methods := [][]string{{"GET"}, {"GET", "GET", "POST"}, {"POST", "PUT"}, {"GET", "PATCH", "DELETE"}}[i%4]
		g.routes[i%w.Services] = append(g.routes[i%w.Services], route{t, methods})
	}
	for p := range pods {
		s := p % w.Services
		name := nouns[s%len(nouns)] + "-service"
		region := regions[p/w.Services%3]
		var b []byte
		for _, kv := range [][2]string{{"service.name", name}, {"service.namespace", "shop"}, {"service.version", fmt.Sprintf("%d.%d.%d", 1+s%3, s%7, p%5)},
			{"deployment.environment.name", "production"}, {"cloud.provider", "aws"}, {"cloud.region", region},
			{"k8s.pod.name", fmt.Sprintf("%s-%08x-%05x", name, 0x7c9d4400+s, 0xa1000+p)}, {"telemetry.sdk.language", "go"}} {
			b = wire.AppendText(append(b, 0x0a), kv[0], kv[1])
		}
		g.pods = append(g.pods, pod{s, region, string(protowire.AppendBytes([]byte{0x0a}, b)), name + ".shop.svc.cluster.local"})
	}
	scope := protowire.AppendString([]byte{0x0a}, "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp")
	scope = protowire.AppendString(append(scope, 0x12), "0.64.0")
	g.scope = protowire.AppendBytes([]byte{0x0a}, scope)
	return g
}

func (g *world) more() bool { return g.done < g.w.Spans }

// at is the event time that the next span is near.
func (g *world) at() int64 { return g.start + int64(float64(g.done)/g.w.Rate*1e9) }

// message is the next one: TracesData with a dozen resources.
func (g *world) message() (msg []byte) {
	left := min(g.w.Message, g.w.Spans-g.done)
	for n := 1 + g.r.IntN(15); left > 0; n-- {
		of := left
		if n > 1 {
			of = min(left, 1+g.r.IntN(2*left/n+1))
		}
		p := g.pods[g.r.IntN(len(g.pods))]
		g.spans = append(g.spans[:0], g.scope...)
		for range of {
			g.oneSpan(p)
			g.spans = protowire.AppendBytes(append(g.spans, 0x12), g.span)
		}
		left -= of
		const schema = "https://opentelemetry.io/schemas/1.37.0"
		msg = protowire.AppendVarint(append(msg, 0x0a), uint64(len(p.resource)+1+protowire.SizeBytes(len(g.spans))+1+protowire.SizeBytes(len(schema))))
		msg = append(msg, p.resource...)
		msg = protowire.AppendBytes(append(msg, 0x12), g.spans)
		msg = protowire.AppendString(append(msg, 0x1a), schema)
	}
	return msg
}

func (g *world) oneSpan(p pod) {
	r, all := g.r, g.routes[p.service]
	f := r.Float64()
	if g.w.Skewed {
		f *= f
	}
	rt := all[int(f*float64(len(all)))]
	method := rt.methods[r.IntN(len(rt.methods))]
	start := uint64(g.at() + r.Int64N(2e9))
	code := int64(200)
	if method != "GET" {
		code = created[r.IntN(4)]
	}
	failed := r.Float64() < g.w.Failing
	switch {
	case failed:
		code = broken[r.IntN(4)]
	case r.Float64() < 0.02:
		code = mistaken[r.IntN(5)]
	}
	x := r.Uint64()
	b := append(g.span[:0], 0x0a, 16)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, r.Uint64()), x)
	b = binary.LittleEndian.AppendUint64(append(b, 0x12, 8), r.Uint64())
	b = binary.LittleEndian.AppendUint64(append(b, 0x22, 8), x|1)
	b = protowire.AppendString(append(b, 0x2a), method+" "+rt.template)
	b = append(b, 0x30, 2) // SERVER
	b = binary.LittleEndian.AppendUint64(append(b, 0x39), start)
	b = binary.LittleEndian.AppendUint64(append(b, 0x41), start+uint64(1e6+2e7*r.ExpFloat64()))
	for _, kv := range [][2]string{{"http.request.method", method}, {"url.scheme", "https"}, {"url.path", concrete(rt.template, r)}, {"http.route", rt.template}} {
		b = wire.AppendText(append(b, 0x4a), kv[0], kv[1])
	}
	b = wire.AppendNumber(append(b, 0x4a), "http.response.status_code", code)
	b = wire.AppendText(append(b, 0x4a), "server.address", p.server)
	b = wire.AppendNumber(append(b, 0x4a), "server.port", 8443)
	b = wire.AppendText(append(b, 0x4a), "network.peer.address", fmt.Sprintf("10.%d.%d.%d", x>>8&3, x>>16&255, x>>24&255))
	b = wire.AppendText(append(b, 0x4a), "network.protocol.version", "1.1")
	b = wire.AppendText(append(b, 0x4a), "user_agent.original", agents[x>>32&7])
	b = wire.AppendText(append(b, 0x4a), "enduser.id", fmt.Sprintf("acct-%05d", r.IntN(accounts)))
	c := counts{Total: 1}
	if failed {
		b = wire.AppendText(append(b, 0x4a), "error.type", fmt.Sprint(code))
		b = append(b, 0x7a, 2, 0x18, 2) // status ERROR
		c.Failed = 1
	}
	g.span = binary.LittleEndian.AppendUint32(append(b, 0x85, 0x01), 0x101) // flags
	k := pathKey{nouns[p.service%len(nouns)] + "-service", rt.template, method, p.region}
	t := g.truth[k]
	g.truth[k] = counts{t.Total + c.Total, t.Failed + c.Failed}
	g.done++
}

// concrete fills a route's parameters with ids.
func concrete(t string, r *rand.Rand) string {
	for {
		i, j := strings.IndexByte(t, '{'), strings.IndexByte(t, '}')
		if i < 0 {
			return t
		}
		t = t[:i] + fmt.Sprint(100_000+r.IntN(900_000)) + t[j+1:]
	}
}
