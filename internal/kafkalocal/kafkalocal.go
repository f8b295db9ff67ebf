// Package kafkalocal runs a Kafka broker inside the process, for the demo, a laptop and tests.
//
// It is kfake, which calls itself a fake: it speaks the protocol to real clients, keeps its data in a directory and has
// consumer groups and transactions, but it has one broker, no replication and no promise for production. What it lacks
// for a laptop is guarded here: two processes on one directory, a torn tail after a crash, retention, a full disk and
// strangers on the port. Production reads a real Kafka cluster through package kafka; nothing there knows this one.
package kafkalocal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	defaultMinFreeBytes     = 512 << 20
	defaultDiskCheckEvery   = 2 * time.Second
	defaultCleanerBackoff   = 15 * time.Second
	minSessionTimeout       = 100 * time.Millisecond
	segmentBytes            = 16 << 20 // Space is given back by whole segments, so they are kept small.
	topicCreationTimeout    = 15 * time.Second
	offsetsRetentionMinutes = 30 * 24 * 60
)

// Options say where the broker keeps its data and what it serves.
type Options struct {
	DataDir string  // Empty keeps everything in memory.
	Addr    string  // Loopback host and port; empty or port 0 takes a free port.
	Topics  []Topic // Made if they are not there; their configuration is brought up to date if they are.
	Logger  *slog.Logger

	MinFreeBytes   uint64        // Below this much free disk the broker refuses to start, and stops. Default 512 MiB.
	DiskCheckEvery time.Duration // Default 2 s.
	CleanerBackoff time.Duration // How often retention and compaction run. Default 15 s.

	TLS   *tls.Config // Serve TLS; for tests of clients.
	Users []User      // Require SASL with one of these; for tests of clients.
	// Listen replaces net.Listen, so that tests can use kfake.VirtualNetwork inside testing/synctest. The topics must be
	// made by the caller then, because the broker's own client cannot dial such a network.
	Listen func(network, address string) (net.Listener, error)
}

// User is a SASL user who may do everything.
type User struct {
	Mechanism string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
	Name      string
	Password  string
}

// Broker is a running embedded broker.
type Broker struct {
	cluster *kfake.Cluster
	lock    *dirLock
	log     *slog.Logger
	addr    string

	stopOnce sync.Once
	failed   chan error    // First cause for the watch to stop the broker; holds one.
	closing  chan struct{} // Ends the watch.
	done     chan struct{}
	watch    sync.WaitGroup
	err      error // Written before done is closed, read after.
}

// Start brings up the broker and its topics, and returns when clients can use them. ctx bounds the start only. The caller
// must Close the broker; it should also watch Done, because the broker stops itself when its disk fills up.
func Start(ctx context.Context, o Options) (*Broker, error) {
	port, err := loopbackPort(o.Addr)
	if err != nil {
		return nil, err
	}
	o.setDefaults()
	b := &Broker{
		log:     o.Logger.With("component", "kafkalocal"),
		failed:  make(chan error, 1),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	if o.DataDir != "" {
		if err := b.prepareDir(o); err != nil {
			return nil, err
		}
	}
	if b.cluster, err = kfake.NewCluster(b.kfakeOptions(o, port)...); err != nil {
		b.lock.release()
		return nil, fmt.Errorf("start embedded Kafka on port %d: %w", port, err)
	}
	b.addr = b.cluster.ListenAddrs()[0]
	if len(o.Topics) > 0 && o.Listen == nil {
		tctx, cancel := context.WithTimeout(ctx, topicCreationTimeout)
		err := ensureTopics(tctx, b.addr, o)
		cancel()
		if err != nil {
			b.stop(nil)
			return nil, err
		}
	}
	b.watch.Add(1)
	go b.watchHealth(o)
	b.log.Info("embedded Kafka is ready", "addr", b.addr, "data_dir", o.DataDir)
	return b, nil
}

// Addr is the host and port to connect to.
func (b *Broker) Addr() string { return b.addr }

// Done is closed when the broker has stopped, by Close or by itself; Err says why.
func (b *Broker) Done() <-chan struct{} { return b.done }

// Err is the reason for which the broker stopped itself; nil while it runs and after Close.
func (b *Broker) Err() error {
	select {
	case <-b.done:
		return b.err
	default:
		return nil
	}
}

// Close stops the broker, writes its state and gives up the directory. It may be called twice; it returns what Err does.
func (b *Broker) Close() error {
	b.stop(nil)
	b.watch.Wait()
	return b.Err()
}

func (b *Broker) stop(cause error) {
	b.stopOnce.Do(func() {
		close(b.closing)
		b.cluster.Close()
		b.lock.release()
		if cause == nil {
			select {
			case cause = <-b.failed: // The last save failed, or an earlier write that nobody got round to.
			default:
			}
		}
		b.err = cause
		close(b.done)
	})
	<-b.done
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = defaultMinFreeBytes
	}
	if o.DiskCheckEvery <= 0 {
		o.DiskCheckEvery = defaultDiskCheckEvery
	}
	if o.CleanerBackoff <= 0 {
		o.CleanerBackoff = defaultCleanerBackoff
	}
}

func (b *Broker) prepareDir(o Options) error {
	if err := os.MkdirAll(o.DataDir, 0o755); err != nil {
		return fmt.Errorf("make data directory of embedded Kafka: %w", err)
	}
	lock, err := lockDir(o.DataDir)
	if err != nil {
		return err
	}
	if err := checkDisk(o.DataDir, o.MinFreeBytes); err != nil {
		lock.release()
		return err
	}
	if _, err := os.Stat(filepath.Join(storeDir(o.DataDir), "meta.json")); err == nil {
		// After a crash the group log may end in half an entry. kfake skips it on load but appends behind it, so that every
		// later commit is lost at the next start. A clean close writes the log anew: open and close once before serving.
		c, err := kfake.NewCluster(b.kfakeOptions(o, 0)...)
		if err != nil {
			lock.release()
			return fmt.Errorf("recover embedded Kafka in %s: %w", o.DataDir, err)
		}
		c.Close()
	}
	b.lock = lock
	return nil
}

func (b *Broker) kfakeOptions(o Options, port int) []kfake.Opt {
	listen := o.Listen
	if listen == nil {
		listen = listenLoopback(o.TLS != nil)
	}
	opts := []kfake.Opt{
		kfake.Ports(port),
		kfake.GroupMinSessionTimeout(minSessionTimeout),
		kfake.WithLogger(&slogAdapter{log: b.log, failed: b.failed}),
		kfake.ListenFn(listen),
		kfake.BrokerConfigs(map[string]string{
			"log.cleaner.backoff.ms":    strconv.FormatInt(o.CleanerBackoff.Milliseconds(), 10),
			"log.segment.bytes":         strconv.Itoa(segmentBytes),
			"offsets.retention.minutes": strconv.Itoa(offsetsRetentionMinutes),
		}),
	}
	if o.DataDir != "" {
		opts = append(opts, kfake.DataDir(storeDir(o.DataDir)))
	}
	if o.TLS != nil {
		opts = append(opts, kfake.TLS(o.TLS))
	}
	if len(o.Users) > 0 {
		opts = append(opts, kfake.EnableSASL())
		for _, u := range o.Users {
			opts = append(opts, kfake.Superuser(u.Mechanism, u.Name, u.Password))
		}
	}
	return opts
}

// storeDir is a folder below the data directory, so that the lock file is never among the files kfake sweeps.
func storeDir(dir string) string { return filepath.Join(dir, "kfake") }

// loopbackPort takes the port out of addr and refuses whatever others could reach: the broker asks nobody who they are.
func loopbackPort(addr string) (int, error) {
	if addr == "" {
		return 0, nil
	}
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, fmt.Errorf("address of embedded Kafka %q: %w", addr, err)
	}
	if host != "localhost" && host != "127.0.0.1" {
		return 0, fmt.Errorf("address of embedded Kafka %q: only 127.0.0.1 is served", addr)
	}
	port, err := strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return 0, errors.New("address of embedded Kafka: port " + strconv.Quote(p) + " is not a port number")
	}
	return port, nil
}
