package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/measured"
)

const partitions = 4

// runBroker serves the embedded Kafka until standard input closes, which it does when the parent ends.
func runBroker(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "benchingest-broker-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	b, err := kafkalocal.Start(ctx, kafkalocal.Options{DataDir: dir, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	fmt.Println(b.Addr())
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // whatever ends it
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	case <-b.Done():
	}
	return b.Close()
}

// startBroker starts the broker as a child; stop ends it.
func startBroker() (addr string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envRole+"="+roleBroker, envConfig+"={}")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start the broker: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start the broker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the broker: %w", err)
	}
	stop = func() {
		in.Close()
		cmd.Wait() //nolint:errcheck // it has said itself what was wrong
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, errors.New("the broker did not start")
	}
	return strings.TrimSpace(line), stop, nil
}

// fill writes a workload to a topic of its own, several messages a batch as a busy exporter's producer does.
func fill(ctx context.Context, addr string, w workload) (c config, t truth, bytes int64, err error) {
	kc := kafka.Config{Brokers: []string{addr}, Compression: "lz4"}
	kc.SetDefaults()
	logger := slog.New(slog.DiscardHandler)
	client, err := kafka.NewClient(kc, logger, kafka.NewMetrics(nil))
	if err != nil {
		return c, nil, 0, fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	c = config{Kafka: addr, Topic: "spans_" + w.Name, Ends: make([]int64, partitions), Spans: int64(w.Spans)}
	if err := client.EnsureTopics(ctx, []kafka.TopicSpec{{Name: c.Topic, Partitions: partitions, Configs: map[string]string{"retention.ms": "-1"}}}); err != nil {
		return c, nil, 0, fmt.Errorf("make topic: %w", err)
	}
	// The last span is a minute old, and the first one not older than the pipeline takes.
	start := time.Now().Add(-time.Minute - time.Duration(float64(w.Spans)/w.Rate*float64(time.Second)))
	g := newWorld(w, start.Truncate(10*time.Second).UnixNano())
	producer := client.NewProducer()
	poison, n := newPoisoner(), 0
	const perBatch = 4
	for p := 0; g.more(); p = (p + 1) % partitions {
		var recs []kafka.Record
		for len(recs) < perBatch && g.more() {
			recs = append(recs, kafka.Record{Value: g.message(), Time: time.Unix(0, g.at()).Add(3 * time.Second).UTC()})
			bytes += int64(len(recs[len(recs)-1].Value))
			if n++; w.Poison > 0 && n%w.Poison == 0 {
				last := recs[len(recs)-1]
				recs = append(recs, kafka.Record{Value: poison.next(last.Value, g.at()), Time: last.Time})
			}
		}
		if err := producer.Produce(ctx, c.Topic, int32(p), recs...); err != nil {
			return c, nil, 0, fmt.Errorf("produce: %w", err)
		}
		c.Ends[p] += int64(len(recs))
	}
	c.Letters = poison.letters
	for _, n := range g.truth {
		c.Failed += n.Failed
	}
	return c, g.truth, bytes, nil
}

// call runs this program in a role and reads its result.
func call(ctx context.Context, role string, c config) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("find this program: %w", err)
	}
	j, err := json.Marshal(c)
	if err != nil {
		return r, fmt.Errorf("write configuration: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), envRole+"="+role, envConfig+"="+string(j))
	cmd.Stderr = os.Stderr
	before := measured.Load()
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%s: %w", role, err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("%s: read its result: %w", role, err)
	}
	r.LoadAverage = before
	return r, nil
}
