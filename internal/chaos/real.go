package chaos

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka/realkafka"
)

const (
	brokerReal  = "real"
	realBrokers = 3
)

// apache is a cluster of Apache Kafka: three brokers, each record on three of them and acknowledged by two at least.
type apache struct{ c *realkafka.Cluster }

var _ cluster = apache{}

func startReal(ctx context.Context, dir string, proxies []*kafkaProxy) (cluster, error) {
	c, err := realkafka.Start(ctx, realkafka.Options{Brokers: len(proxies), Dir: filepath.Join(dir, "kafka"),
		Advertise: func(node int, l realkafka.Listener, addr string) string {
			if l == realkafka.Plain {
				return proxies[node-1].addr()
			}
			return addr
		}})
	if err != nil {
		return nil, err
	}
	for i, p := range proxies {
		p.serve(c.Addr(i+1, realkafka.Plain))
	}
	return apache{c}, nil
}

func (a apache) Len() int         { return a.c.Brokers() }
func (a apache) Replication() int { return 3 }

func (a apache) Kill(i int) error { return a.c.Kill(i + 1) }
func (a apache) Stop(i int) error { return a.c.Stop(i + 1) }
func (a apache) Cont(i int) error { return a.c.Cont(i + 1) }
func (a apache) Close() error     { return a.c.Close() }

const shutdownWithin = 20 * time.Second

func (a apache) Shutdown(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWithin)
	defer cancel()
	return a.c.Shutdown(ctx, i+1)
}

// listensWithin is how long a broker may take until it takes connections. Whether it has caught up is not waited for: the
// next fault may strike before that.
const listensWithin = time.Minute

func (a apache) Start(ctx context.Context, i int) error {
	if err := a.c.Restart(i + 1); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, listensWithin)
	defer cancel()
	for {
		conn, err := net.DialTimeout("tcp", a.c.Addr(i+1, realkafka.Plain), time.Second)
		if err == nil {
			return conn.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("broker %d does not listen: %w", i, err)
		}
		pause(ctx, retryEvery)
	}
}
