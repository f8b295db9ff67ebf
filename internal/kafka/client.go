package kafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// Client talks to one cluster. It is safe for concurrent use. Close it after everything that uses it has ended.
type Client struct {
	cfg       Config
	log       *slog.Logger
	metrics   *Metrics
	addr      net.Addr
	transport *kafka.Transport
	kc        *kafka.Client
	conns     connSet
	compress  kafka.Compression
}

// NewClient checks the configuration and reads its files; it does not connect. Logger and metrics may be nil.
func NewClient(cfg Config, logger *slog.Logger, metrics *Metrics) (*Client, error) {
	cfg.SetDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	tlsConfig, err := cfg.TLS.build()
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if metrics == nil {
		metrics = NewMetrics(nil)
	}
	c := &Client{cfg: cfg, log: logger.With("component", "kafka"), metrics: metrics, addr: kafka.TCP(cfg.Brokers...)}
	c.compress, _ = compression(cfg.Compression) // Checked by Validate.
	c.transport = &kafka.Transport{
		Dial:        c.conns.dialer(cfg.DialTimeout),
		DialTimeout: cfg.DialTimeout,
		MetadataTTL: cfg.MetadataTTL,
		ClientID:    cfg.ClientID,
		TLS:         tlsConfig,
	}
	if cfg.SASL != nil {
		c.transport.SASL = &login{*cfg.SASL}
	}
	c.kc = &kafka.Client{Addr: c.addr, Transport: c.transport}
	return c, nil
}

// Close breaks every connection at once, requests under way included. It may be called twice.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.conns.closeAll()
}

// Ping asks for the cluster's metadata: a way to tell early that address, TLS and login are right.
func (c *Client) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	if _, err := c.kc.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}}); err != nil {
		return c.fail(opMetadata, "cluster", -1, err)
	}
	return nil
}

// connSet knows the open connections of its dialers. kafka-go lets requests under way run to their deadline, so a long
// poll or a join would outlive whoever asked for it.
type connSet struct {
	mu     sync.Mutex
	closed bool
	open   map[*trackedConn]struct{}
}

func (s *connSet) dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return s.track(conn)
	}
}

func (s *connSet) track(conn net.Conn) (net.Conn, error) {
	t := &trackedConn{Conn: conn, set: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	if s.open == nil {
		s.open = map[*trackedConn]struct{}{}
	}
	s.open[t] = struct{}{}
	return t, nil
}

// closeAll also refuses later dials.
func (s *connSet) closeAll() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for t := range open {
		_ = t.Conn.Close()
	}
}

type trackedConn struct {
	net.Conn
	set *connSet
}

func (t *trackedConn) Close() error {
	t.set.mu.Lock()
	delete(t.set.open, t)
	t.set.mu.Unlock()
	return t.Conn.Close()
}

func compression(name string) (kafka.Compression, error) {
	switch name {
	case "none":
		return 0, nil
	case "gzip":
		return kafka.Gzip, nil
	case "snappy":
		return kafka.Snappy, nil
	case "lz4":
		return kafka.Lz4, nil
	case "zstd":
		return kafka.Zstd, nil
	default:
		return 0, errors.New("compression: " + name + " is none of none, gzip, snappy, lz4, zstd")
	}
}
