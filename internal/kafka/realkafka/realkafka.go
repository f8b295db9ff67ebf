// Package realkafka brings up Apache Kafka on 127.0.0.1 for contract tests, without its usual distribution: the jars come
// from Maven, pinned, into the user's cache, and run on Java 17 or newer. It is for tests only.
package realkafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// Version is the Kafka that is run.
const Version = "4.3.1"

const (
	javaMin         = 17
	downloadTimeout = 5 * time.Minute
	startTimeout    = 60 * time.Second
	stopTimeout     = 10 * time.Second
)

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>tocsin</groupId><artifactId>realkafka</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>` + Version + `</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>` + Version + `</version></dependency>
</dependencies></project>
`

const properties = `process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=data
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=100
auto.create.topics.enable=false
`

var (
	once   sync.Once
	addr   string
	reason error // Why there is no broker.
	stop   = func() {}
)

// Wanted tells whether the tests should run against Apache Kafka: TOCSIN_REAL_KAFKA=1.
func Wanted() bool { return os.Getenv("TOCSIN_REAL_KAFKA") == "1" }

// Addr starts the broker of this test process at the first call. Where it cannot be had, the test is skipped with the
// reason; the first run downloads 54 MB.
func Addr(t testing.TB) string {
	t.Helper()
	once.Do(func() { addr, reason = start() })
	if reason != nil {
		t.Skipf("Apache Kafka %s cannot be had: %v", Version, reason)
	}
	return addr
}

// Stop ends the broker. Call it from TestMain.
func Stop() { stop() }

func start() (string, error) {
	java, err := findJava()
	if err != nil {
		return "", err
	}
	lib, err := jars()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "tocsin-realkafka-")
	if err != nil {
		return "", err
	}
	client, err := freePort()
	if err != nil {
		return "", err
	}
	controller, err := freePort()
	if err != nil {
		return "", err
	}
	conf := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(conf, fmt.Appendf(nil, properties, client, controller), 0o600); err != nil {
		return "", err
	}
	classpath := filepath.Join(lib, "*")
	format := exec.Command(java, "-cp", classpath, "kafka.tools.StorageTool", "format", "--standalone",
		"-t", "Tb3Hy5n8Qk2Zr0sW1vXuAg", "-c", conf)
	format.Dir = dir
	if out, err := format.CombinedOutput(); err != nil {
		return "", fmt.Errorf("format its storage: %w: %s", err, lastLines(out))
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", err
	}
	broker := exec.Command(java, "-Xmx512m", "-cp", classpath, "kafka.Kafka", conf)
	broker.Dir, broker.Stdout, broker.Stderr = dir, log, log
	endWithParent(broker)
	if err := broker.Start(); err != nil {
		return "", err
	}
	exited := make(chan struct{})
	go func() { _ = broker.Wait(); close(exited) }()
	stop = func() {
		_ = broker.Process.Signal(os.Interrupt)
		select {
		case <-exited:
		case <-time.After(stopTimeout):
			_ = broker.Process.Kill()
			<-exited
		}
		_ = log.Close()
		_ = os.RemoveAll(dir)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(client))
	if err := ready(address, exited); err != nil {
		out, _ := os.ReadFile(log.Name())
		stop()
		stop = func() {}
		return "", fmt.Errorf("%w: %s", err, lastLines(out))
	}
	return address, nil
}

func ready(address string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-exited:
			return errors.New("it ended while it started")
		case <-ctx.Done():
			return fmt.Errorf("it was not ready in %s", startTimeout)
		case <-tick.C:
		}
		tr := &kafka.Transport{}
		md, err := (&kafka.Client{Addr: kafka.TCP(address), Transport: tr}).Metadata(ctx, &kafka.MetadataRequest{})
		tr.CloseIdleConnections()
		if err == nil && len(md.Brokers) == 1 {
			return nil
		}
	}
}

// jars fetches the broker's jars once for all clones of the repository.
func jars() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "tocsin", "kafka-"+Version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("mvn is not installed")
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "pom.xml"), []byte(pom), 0o600); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), downloadTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "--strict-checksums", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(tmp, "lib"))
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch its jars: %w: %s", err, lastLines(out))
	}
	// The rename makes a whole directory appear at once; losing the race to another process is as good.
	if err := os.Rename(filepath.Join(tmp, "lib"), dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, nil
}

func findJava() (string, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("java is not installed")
	}
	out, err := exec.Command(java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("java -version: %w", err)
	}
	_, v, _ := strings.Cut(string(out), `version "`)
	v, _, _ = strings.Cut(v, `"`)
	major, _, _ := strings.Cut(v, ".")
	if n, err := strconv.Atoi(major); err != nil || n < javaMin {
		return "", fmt.Errorf("java is %q, %d is needed", v, javaMin)
	}
	return java, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
