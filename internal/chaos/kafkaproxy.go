package chaos

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/offsetcommit"
)

// kafkaProxy stands before one broker, which tells clients the proxy's address instead of its own. It knows members by
// the client id in their requests.
type kafkaProxy struct {
	broker   int
	listener net.Listener
	target   string
	traps    *traps
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func newKafkaProxy(broker int, t *traps) (*kafkaProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand before a broker: %w", err)
	}
	return &kafkaProxy{broker: broker, listener: l, traps: t, conns: map[net.Conn]struct{}{}}, nil
}

func (p *kafkaProxy) addr() string { return p.listener.Addr().String() }

// serve passes requests on to a broker until close.
func (p *kafkaProxy) serve(target string) {
	p.target = target
	p.wg.Go(func() {
		for {
			down, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.connection(down) })
		}
	})
}

func (p *kafkaProxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *kafkaProxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *kafkaProxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// connection passes whole frames, one request at a time, as kafka-go sends them.
func (p *kafkaProxy) connection(down net.Conn) {
	defer p.drop(down)
	up, err := net.DialTimeout("tcp", p.target, 2*time.Second)
	if err != nil {
		return
	}
	defer p.drop(up)
	if !p.keep(down) || !p.keep(up) {
		return
	}
	var request, response []byte
	for {
		if request, err = frame(down, request); err != nil {
			return
		}
		if response, err = p.exchange(down, up, request, response); err != nil {
			return
		}
	}
}

// exchange is one request with its answer, and what happens to them.
func (p *kafkaProxy) exchange(down, up net.Conn, request, response []byte) ([]byte, error) {
	member, point, commit := p.read(request)
	if commit && p.traps.lost.reservations {
		forget(request)
	}
	h := hit{member, p.broker}
	tr := p.traps.spring(h, point)
	defer tr.finish(false)
	switch then, _ := tr.at(before, h); then {
	case lose, half, orphan:
		return response, errLost
	case refuse:
		if commit {
			return response, answer(down, request, tr.code)
		}
		return response, errLost
	default:
	}
	if _, err := up.Write(request); err != nil {
		return response, err
	}
	if tr == nil { // no need to have all of it at once
		return response, relay(down, up)
	}
	response, err := frame(up, response)
	if err != nil {
		return response, err
	}
	if then, struck := tr.at(after, h); struck && then != proceed {
		return response, errLost
	}
	_, err = down.Write(response)
	tr.at(answered, h)
	return response, err
}

var errLost = fmt.Errorf("lost on the way")

// relay copies one answer.
func relay(down, up net.Conn) error {
	var head [4]byte
	if _, err := io.ReadFull(up, head[:]); err != nil {
		return err
	}
	if _, err := down.Write(head[:]); err != nil {
		return err
	}
	_, err := io.CopyN(down, up, int64(binary.BigEndian.Uint32(head[:])))
	return err
}

const frameMax = 128 << 20

// frame reads one into memory that is used again.
func frame(r io.Reader, b []byte) ([]byte, error) {
	b = append(b[:0], 0, 0, 0, 0)
	if _, err := io.ReadFull(r, b); err != nil {
		return b, err
	}
	n := int(binary.BigEndian.Uint32(b))
	if n > frameMax {
		return b, fmt.Errorf("a frame of %d bytes", n)
	}
	if cap(b) < 4+n {
		b = append(make([]byte, 0, 4+n), b...)
	}
	b = b[:4+n]
	_, err := io.ReadFull(r, b[4:])
	return b, err
}

// apis are the requests that have a name of their own as a step of the protocol.
var apis = map[uint16]string{1: "fetch", 2: "bounds", 3: "metadata", 9: "committed", 10: "coordinator", 11: "join", 12: "heartbeat", 13: "leave", 14: "sync"}

const apiOffsetCommit = 8

// read tells whose request it is and which step.
func (p *kafkaProxy) read(request []byte) (member int, point string, commit bool) {
	const header = 4 + 2 + 2 + 4 // size, api, version, correlation id
	if len(request) < header+2 {
		return -1, "", false
	}
	member = -1
	if n := int(int16(binary.BigEndian.Uint16(request[header:]))); n > 0 && len(request) >= header+2+n {
		member = memberOf(string(request[header+2 : header+2+n]))
	}
	api := binary.BigEndian.Uint16(request[4:])
	if api != apiOffsetCommit {
		return member, apis[api], false
	}
	if bytes.Contains(request, []byte(`"end":`)) && !bytes.Contains(request, []byte(`"end":0`)) {
		return member, "reserve", true
	}
	return member, "done", true
}

// forget takes the reserved range out of a commit, which is of the same length then.
func forget(request []byte) {
	const field = `"end":`
	i := bytes.Index(request, []byte(field))
	if i < 0 {
		return
	}
	for i += len(field); i < len(request) && request[i] >= '0' && request[i] <= '9'; i++ {
		request[i] = ' '
	}
	request[i-1] = '0'
}

// answer forges the coordinator's answer to a commit.
func answer(down net.Conn, request []byte, code int16) error {
	version, correlation, _, msg, err := protocol.ReadRequest(bytes.NewReader(request))
	if err != nil {
		return fmt.Errorf("read a commit: %w", err)
	}
	res := &offsetcommit.Response{}
	for _, t := range msg.(*offsetcommit.Request).Topics {
		rt := offsetcommit.ResponseTopic{Name: t.Name}
		for _, part := range t.Partitions {
			rt.Partitions = append(rt.Partitions, offsetcommit.ResponsePartition{PartitionIndex: part.PartitionIndex, ErrorCode: code})
		}
		res.Topics = append(res.Topics, rt)
	}
	return protocol.WriteResponse(down, version, correlation, res)
}
