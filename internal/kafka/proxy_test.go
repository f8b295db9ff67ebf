package kafka_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a client and a broker, speaks for the broker under its own address, and can keep the answers to
// offset commits and joins from coming back.
type proxy struct {
	addr    string
	target  string
	swallow atomic.Bool
	joining atomic.Bool // A join was kept waiting.
	hold    atomic.Bool // Keep joins waiting.

	mu    sync.Mutex
	conns []net.Conn
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{addr: l.Addr().String(), target: target}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.DialTimeout("tcp", target, 5*time.Second)
			if err != nil {
				_ = down.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, down, up)
			p.mu.Unlock()
			wg.Add(1)
			go func() { defer wg.Done(); p.serve(down, up) }()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

const (
	keyMetadata        = 3
	keyOffsetCommit    = 8
	keyFindCoordinator = 10
	keyJoinGroup       = 11
)

// serve passes whole frames, one request at a time, as kafka-go sends them.
func (p *proxy) serve(down, up net.Conn) {
	defer down.Close()
	defer up.Close()
	for {
		req, err := frame(down)
		if err != nil {
			return
		}
		key := binary.BigEndian.Uint16(req[4:])
		if _, err := up.Write(req); err != nil {
			return
		}
		res, err := frame(up)
		if err != nil {
			return
		}
		switch key {
		case keyMetadata, keyFindCoordinator:
			p.rewrite(res)
		case keyOffsetCommit:
			if p.swallow.Load() {
				continue
			}
		case keyJoinGroup:
			if p.hold.Load() {
				p.joining.Store(true)
				continue
			}
		}
		if _, err := down.Write(res); err != nil {
			return
		}
	}
}

// rewrite puts the proxy's port where the broker's is, so that the client does not find the way around.
func (p *proxy) rewrite(b []byte) {
	port := func(addr string) []byte {
		a, _ := net.ResolveTCPAddr("tcp", addr)
		return binary.BigEndian.AppendUint32(nil, uint32(a.Port))
	}
	from, to := port(p.target), port(p.addr)
	for i := 0; i+4 <= len(b); i++ {
		if [4]byte(b[i:i+4]) == [4]byte(from) {
			copy(b[i:], to)
		}
	}
}

func frame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	b := make([]byte, 4+binary.BigEndian.Uint32(head))
	copy(b, head)
	_, err := io.ReadFull(r, b[4:])
	return b, err
}
