package realkafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// prepare lays out the folder: ports, certificate, configuration, formatted storage. What is there stays.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if err := c.choosePorts(); err != nil {
		return err
	}
	if err := c.certificate(); err != nil {
		return err
	}
	content := log4j1
	if c.log4j2() {
		content = log4j2
	}
	if err := os.WriteFile(c.path("log4j.properties"), []byte(content), 0o600); err != nil {
		return err
	}
	flag := c.logFlag()
	if c.rel.zookeeper {
		if err := c.prepareZooKeeper(flag); err != nil {
			return err
		}
	}
	var formats errgroup.Group
	for _, n := range c.nodes {
		conf := filepath.Join(n.dir, "server.properties")
		if err := os.WriteFile(conf, render(c.properties(n)), 0o600); err != nil {
			return err
		}
		n.command = func() *exec.Cmd { return c.java(c.o.HeapMiB, flag, "kafka.Kafka", conf) }
		if !c.rel.zookeeper {
			formats.Go(func() error { return c.format(ctx, n, flag, conf) })
		}
	}
	return formats.Wait()
}

func (c *Cluster) log4j2() bool { return strings.HasPrefix(c.o.Version, "4.") }

// logFlag makes warnings and errors be printed.
func (c *Cluster) logFlag() string {
	if c.log4j2() {
		return "-Dlog4j2.configurationFile=" + c.path("log4j.properties")
	}
	return "-Dlog4j.configuration=file:" + c.path("log4j.properties")
}

// java is a Java program of the version, lean: the first compiler only, which is ready at once, and a simple collector.
func (c *Cluster) java(heapMiB int, args ...string) *exec.Cmd {
	return exec.Command(c.run.java, c.javaArgs(heapMiB, args...)...)
}

func (c *Cluster) javaArgs(heapMiB int, args ...string) []string {
	return append([]string{fmt.Sprintf("-Xmx%dm", heapMiB), "-Xms32m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:MaxMetaspaceSize=160m", "-Djava.awt.headless=true", "-cp", c.run.classpath}, args...)
}

func (c *Cluster) format(ctx context.Context, n *node, flag, conf string) error {
	if _, err := os.Stat(filepath.Join(n.dir, "data", "meta.properties")); err == nil {
		return nil
	}
	args := []string{flag, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", conf}
	for _, u := range c.o.Users {
		if u.Mechanism != MechanismPlain {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%q,password=%q]", u.Mechanism, u.Name, u.Password))
		}
	}
	cmd := c.java(128, args...)
	cmd.Dir = n.dir
	endWithParent(cmd)
	stop := context.AfterFunc(ctx, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	defer stop()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format the storage of broker %d: %w: %s", n.id, err, lastLines(string(out)))
	}
	return nil
}

type savedPorts struct {
	Nodes     []map[Listener]int
	ZooKeeper int
}

// choosePorts takes those of the time before when the folder was used before.
func (c *Cluster) choosePorts() error {
	var saved savedPorts
	file := c.path("ports.json")
	if b, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(b, &saved); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if len(saved.Nodes) != c.o.Brokers {
			return fmt.Errorf("%s is of %d brokers", c.dir, len(saved.Nodes))
		}
	}
	var errs []error
	port := func(have int) int {
		if have != 0 {
			return have
		}
		p, err := freePort()
		errs = append(errs, err)
		return p
	}
	for i := range c.o.Brokers {
		n := &node{id: i + 1, dir: c.path(fmt.Sprint(i + 1)), ports: map[Listener]int{}, advertised: map[Listener]string{}}
		if i == len(saved.Nodes) {
			saved.Nodes = append(saved.Nodes, map[Listener]int{})
		}
		for _, l := range append([]Listener{internal, controller}, c.o.Listeners...) {
			n.ports[l] = port(saved.Nodes[i][l])
		}
		saved.Nodes[i] = n.ports
		for _, l := range c.o.Listeners {
			n.advertised[l] = c.o.Advertise(n.id, l, addr(n.ports[l]))
		}
		errs = append(errs, os.MkdirAll(n.dir, 0o755))
		c.nodes = append(c.nodes, n)
	}
	if c.rel.zookeeper {
		saved.ZooKeeper = port(saved.ZooKeeper)
		c.zkPort = saved.ZooKeeper
	}
	b, err := json.Marshal(saved)
	return errors.Join(append(errs, err, os.WriteFile(file, b, 0o600))...)
}

// certificate makes one for 127.0.0.1 that clients trust as its own authority.
func (c *Cluster) certificate() error {
	if !c.o.has(TLS) && !c.o.has(SASLTLS) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "realkafka"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &key.PublicKey, key)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// In the properties and not in a file, because version 2.8 takes no file whose key has no password.
	c.cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	c.key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	return os.WriteFile(c.path(caFile), []byte(c.cert), 0o600)
}
