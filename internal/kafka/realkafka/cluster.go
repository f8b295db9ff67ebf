package realkafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	startTimeout = 90 * time.Second
	pollEvery    = 100 * time.Millisecond
	clusterID    = "Tb3Hy5n8Qk2Zr0sW1vXuAg"
	caFile       = "ca.pem"

	// Below the ports that systems give to outgoing connections: one of those could otherwise take the port of a broker
	// while it is down.
	portFrom, portTo = 15_000, 31_000
)

// Cluster is one or more brokers. Its methods may be called concurrently; those of one broker are done one after
// another. Close it: brokers end with the process that started them on Linux only.
type Cluster struct {
	o      Options
	rel    release
	run    runtime
	dir    string
	temp   bool
	nodes  []*node // node 1 first
	zk     *node   // of versions without KRaft
	zkPort int

	key, cert string // in PEM
}

// Start brings up a cluster and returns when every broker knows every other. The error is an ErrUnavailable where Java,
// Maven or the jars cannot be had.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	o.setDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("start Apache Kafka: %w", err)
	}
	c := &Cluster{o: o, rel: releases[o.Version], dir: o.Dir}
	if c.run, err = find(ctx, o.Version); err != nil {
		return nil, err
	}
	if c.dir == "" {
		c.temp = true
		if c.dir, err = os.MkdirTemp("", "tocsin-kafka-"); err != nil {
			return nil, fmt.Errorf("start Apache Kafka: %w", err)
		}
	} else if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, fmt.Errorf("start Apache Kafka: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start Apache Kafka %s: %w", o.Version, errors.Join(err, c.Close()))
		}
	}()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if c.zk != nil {
		if err := c.zk.start(); err != nil {
			return nil, err
		}
		if err := c.zk.listens(ctx, c.zkPort); err != nil {
			return nil, err
		}
		if err := c.zkUsers(ctx); err != nil {
			return nil, err
		}
	}
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			return nil, err
		}
	}
	return c, c.WaitReady(ctx)
}

// Brokers is how many there are, stopped ones included. They are numbered from 1.
func (c *Cluster) Brokers() int { return len(c.nodes) }

// Addr is where a broker listens, whatever clients are told.
func (c *Cluster) Addr(id int, l Listener) string { return addr(c.nodes[id-1].ports[l]) }

// Addrs are the addresses that clients are told, of all brokers.
func (c *Cluster) Addrs(l Listener) []string {
	out := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = n.told(l)
	}
	return out
}

// CAFile is the certificate, in PEM, by which clients know the brokers at TLS and SASLTLS.
func (c *Cluster) CAFile() string { return c.path(caFile) }

// Log is what a broker has printed since it was first started: warnings and errors.
func (c *Cluster) Log(id int) string { return c.nodes[id-1].output() }

// Kill ends a broker with SIGKILL, also one that is stopped.
func (c *Cluster) Kill(id int) error { return c.nodes[id-1].kill() }

// Shutdown ends a broker in order: it hands over its partitions first. After ctx, it is killed.
func (c *Cluster) Shutdown(ctx context.Context, id int) error { return c.nodes[id-1].shutdown(ctx) }

// Stop halts a broker with SIGSTOP, its connections open: what a long pause of a machine looks like.
func (c *Cluster) Stop(id int) error { return c.nodes[id-1].halt() }

// Cont lets a stopped broker go on.
func (c *Cluster) Cont(id int) error { return c.nodes[id-1].goOn() }

// Restart starts a broker that has ended, on its ports and data. It does not wait for it: see WaitReady.
func (c *Cluster) Restart(id int) error { return c.nodes[id-1].start() }

// WaitReady returns when every broker answers and knows all the others. Brokers that have ended or are stopped keep it
// waiting until ctx ends or a minute and a half has passed.
func (c *Cluster) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, n := range c.nodes {
		if err := n.ready(ctx, len(c.nodes)); err != nil {
			return err
		}
	}
	return nil
}

// Close kills what runs, in no order, and removes the data unless Options.Dir was given.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.kill())
	}
	if c.zk != nil {
		errs = append(errs, c.zk.kill())
	}
	for _, n := range c.nodes {
		n.closeLog()
	}
	if c.temp {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// ready waits until a broker knows as many as there are, and a topic can be made.
func (n *node) ready(ctx context.Context, brokers int) error {
	tr := &kafka.Transport{MetadataTTL: pollEvery / 2, Resolver: nil}
	defer tr.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(addr(n.ports[internal])), Transport: tr}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		try, cancel := context.WithTimeout(ctx, time.Second)
		md, err := client.Metadata(try, &kafka.MetadataRequest{Topics: []string{}})
		cancel()
		if err == nil && len(md.Brokers) == brokers && md.Controller.Host != "" {
			return nil
		}
		select {
		case <-n.ended():
			return fmt.Errorf("broker %d ended while it started: %s", n.id, lastLines(n.output()))
		case <-ctx.Done():
			return fmt.Errorf("broker %d is not ready: %w: %s", n.id, ctx.Err(), lastLines(n.output()))
		case <-tick.C:
		}
	}
}

var portsGiven sync.Map // of this process, so that two clusters do not choose one port in the moment before they listen

func freePort() (int, error) {
	for range 1000 {
		port := portFrom + rand.IntN(portTo-portFrom)
		if _, given := portsGiven.LoadOrStore(port, true); given {
			continue
		}
		if l, err := net.Listen("tcp", addr(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port found")
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func lastLines(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// Java is a program of the version's jars, such as org.apache.kafka.tools.ProducerPerformance. What Kafka logs goes to
// its standard output with what it prints.
func (c *Cluster) Java(ctx context.Context, class string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.run.java, c.javaArgs(128, append([]string{c.logFlag(), class}, args...)...)...)
	cmd.Dir = c.dir
	endWithParent(cmd)
	return cmd
}
