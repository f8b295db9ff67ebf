package kafkalocal

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
)

const (
	maxRequestBytes = 100 << 20 // Kafka's own default for socket.request.max.bytes.
	maxAPIKey       = 92
)

var errNotKafka = errors.New("the first bytes are not a Kafka request")

// listenLoopback refuses connections whose first bytes are not a Kafka request. kfake allocates what the first four
// bytes say and dereferences an unknown request: one browser on the port ("GET " is 1.2 GB) would take the process down.
// Behind TLS the handshake is that check.
func listenLoopback(isTLS bool) func(network, address string) (net.Listener, error) {
	return func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if err != nil || isTLS {
			return l, err
		}
		return kafkaListener{l}, nil
	}
}

type kafkaListener struct{ net.Listener }

func (l kafkaListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &kafkaConn{Conn: c}, nil
}

// kafkaConn checks the first frame: kfake reads a connection from one goroutine at a time, so no lock is needed.
type kafkaConn struct {
	net.Conn
	checked bool
	head    []byte
}

func (c *kafkaConn) Read(p []byte) (int, error) {
	if !c.checked {
		c.checked = true
		head := make([]byte, 6)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		if binary.BigEndian.Uint32(head) > maxRequestBytes || binary.BigEndian.Uint16(head[4:]) > maxAPIKey {
			return 0, errNotKafka
		}
		c.head = head
	}
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}
