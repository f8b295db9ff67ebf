package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafkalocal"
)

// cluster is the brokers of a campaign, numbered from 0. Clients are told the proxies' addresses.
type cluster interface {
	Len() int
	Replication() int
	// Kill ends a broker as a crash would, Start starts one that has ended and waits until it answers.
	Kill(i int) error
	Start(ctx context.Context, i int) error
	// Shutdown ends one in order.
	Shutdown(i int) error
	// Stop is SIGSTOP, Cont SIGCONT.
	Stop(i int) error
	Cont(i int) error
	Close() error
}

// What a child of this program is told to be.
const (
	envRole    = "TOCSIN_CHAOS_ROLE"
	envConfig  = "TOCSIN_CHAOS_CONFIG"
	roleBroker = "broker"
)

type brokerConfig struct {
	Dir       string
	Listen    string // where it listens
	Advertise string // what clients are told
}

// Child does what this process was started for, if that is to be a part of a campaign, and never returns then.
func Child() {
	if os.Getenv(envRole) != roleBroker {
		return
	}
	if err := runBroker(); err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runBroker serves the embedded Kafka until standard input closes.
func runBroker() error {
	var c brokerConfig
	if err := json.Unmarshal([]byte(os.Getenv(envConfig)), &c); err != nil {
		return fmt.Errorf("read %s: %w", envConfig, err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := kafkalocal.Start(context.Background(), kafkalocal.Options{DataDir: c.Dir, Addr: c.Listen, Logger: logger,
		Listen: func(network, _ string) (net.Listener, error) {
			l, err := net.Listen(network, c.Listen)
			if err != nil {
				return nil, err
			}
			a, err := net.ResolveTCPAddr("tcp", c.Advertise)
			return advertising{l, a}, err
		}})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	select {
	case <-gone:
	case <-b.Done():
	}
	return b.Close()
}

// advertising listens at one address and tells another.
type advertising struct {
	net.Listener
	told net.Addr
}

func (a advertising) Addr() net.Addr { return a.told }

// embedded is the embedded broker as a child process.
type embedded struct {
	cfg brokerConfig
	log string

	mu   sync.Mutex
	proc *process
}

var _ cluster = (*embedded)(nil)

func startEmbedded(ctx context.Context, dir string, proxies []*kafkaProxy) (*embedded, error) {
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	e := &embedded{cfg: brokerConfig{Dir: filepath.Join(dir, "broker"), Listen: listen, Advertise: proxies[0].addr()}, log: filepath.Join(dir, "broker.log")}
	proxies[0].serve(listen)
	return e, e.Start(ctx, 0)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (e *embedded) Len() int         { return 1 }
func (e *embedded) Replication() int { return 1 }

const brokerStart = 30 * time.Second

func (e *embedded) Start(context.Context, int) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	config, err := json.Marshal(e.cfg)
	if err != nil {
		return fmt.Errorf("configure the broker: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envRole+"="+roleBroker, envConfig+"="+string(config))
	p, err := startProcess(cmd, e.log, in)
	in.Close()
	if err != nil {
		return err
	}
	_ = out.SetReadDeadline(time.Now().Add(brokerStart))
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		p.kill()
		return errors.New("the broker did not start: see " + e.log)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proc = p
	return nil
}

func (e *embedded) process() *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.proc
}

func (e *embedded) Kill(int) error { e.process().kill(); return nil }
func (e *embedded) Stop(int) error { e.process().stop(); return nil }
func (e *embedded) Cont(int) error { e.process().cont(); return nil }

func (e *embedded) Shutdown(int) error {
	p := e.process()
	_ = p.stdin.Close() // it ends in order then
	select {
	case <-p.done:
	case <-time.After(brokerStart):
		p.kill()
		return errKilled
	}
	return nil
}

func (e *embedded) Close() error {
	if p := e.process(); p != nil {
		p.kill()
	}
	return nil
}
