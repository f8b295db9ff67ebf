package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
)

func TestTLSAndEveryLogin(t *testing.T) {
	cert, ca := selfSigned(t)
	b := kafkatest.StartWith(t, kafkalocal.Options{
		Topics: []kafkalocal.Topic{{Name: "t"}},
		TLS:    &tls.Config{Certificates: []tls.Certificate{cert}},
		Users: []kafkalocal.User{{Mechanism: "PLAIN", Name: "u", Password: "p"},
			{Mechanism: "SCRAM-SHA-256", Name: "a=b,c", Password: "p256"},
			{Mechanism: "SCRAM-SHA-512", Name: "u512", Password: "p512"}},
	})
	for _, u := range []struct{ mechanism, name, password string }{
		{"PLAIN", "u", "p"}, {"SCRAM-SHA-256", "a=b,c", "p256"}, {"SCRAM-SHA-512", "u512", "p512"}} {
		t.Run(u.mechanism, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "password")
			must(t, os.WriteFile(file, []byte("wrong\n"), 0o600))
			edit := func(cfg *kafka.Config) {
				cfg.TLS = &kafka.TLSConfig{CAFile: ca}
				cfg.SASL = &kafka.SASLConfig{Mechanism: u.mechanism, Username: u.name, PasswordFile: file}
				cfg.MetadataTTL = 50 * time.Millisecond
			}
			c := newClient(t, b.Addr(), edit)
			// kfake hangs up on a wrong password without a word, where Kafka says so.
			err := c.Ping(t.Context())
			if err == nil || strings.Contains(err.Error(), "wrong") {
				t.Errorf("wrong password: %v", err)
			}
			// The file is read for each connection: a corrected password needs no restart.
			must(t, os.WriteFile(file, []byte(u.password+"\n"), 0o600))
			eventually(t, "the corrected password", func() bool { return c.Ping(t.Context()) == nil })
			must(t, c.NewProducer().Produce(t.Context(), "t", 0, values(0, 1)...))
			if got, err := c.Fetch(t.Context(), "t", 0, 0, 0, time.Second); err != nil || len(got.Records) == 0 {
				t.Errorf("fetch: %+v, %v", got, err)
			}
			gen := run(t, c, "g-"+u.mechanism, "t", nil).owns(t, "t", 1)
			must(t, c.Commit(t.Context(), gen, "t", 0, 1, ""))
		})
	}
	t.Run("password from the environment", func(t *testing.T) {
		t.Setenv("TOCSIN_TEST_PASSWORD", "p512")
		c := newClient(t, b.Addr(), func(cfg *kafka.Config) {
			cfg.TLS = &kafka.TLSConfig{CAFile: ca}
			cfg.SASL = &kafka.SASLConfig{Mechanism: "SCRAM-SHA-512", Username: "u512", PasswordEnv: "TOCSIN_TEST_PASSWORD"}
		})
		must(t, c.Ping(t.Context()))
	})
	t.Run("unknown certificate authority", func(t *testing.T) {
		c := newClient(t, b.Addr(), func(cfg *kafka.Config) { cfg.TLS = &kafka.TLSConfig{} })
		if err := c.Ping(t.Context()); kafka.ReasonOf(err) != kafka.ReasonAuthentication {
			t.Errorf("ping: %v", err)
		}
	})
}

func TestConfigReportsEveryMistake(t *testing.T) {
	cfg := kafka.Config{Brokers: []string{"nowhere"}, Compression: "rar", CommitTimeout: -1,
		TLS: &kafka.TLSConfig{CertFile: "x"}, SASL: &kafka.SASLConfig{Mechanism: "GSSAPI", PasswordFile: "a", PasswordEnv: "b"}}
	_, err := kafka.NewClient(cfg, nil, nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"nowhere", "rar", "commit_timeout", "key_file", "GSSAPI", "username", "password_file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	c := newClient(t, "127.0.0.1:1")
	if _, err := c.NewGroup(kafka.GroupConfig{}); err == nil || !strings.Contains(err.Error(), "id") ||
		!strings.Contains(err.Error(), "topics") {
		t.Errorf("empty group: %v", err)
	}
}

func TestNobodyListeningIsAConnectionError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	c := newClient(t, l.Addr().String(), func(cfg *kafka.Config) { cfg.RequestTimeout = time.Second })
	_, fetch := c.Fetch(t.Context(), "t", 0, 0, 0, 0)
	for what, err := range map[string]error{"ping": c.Ping(t.Context()), "fetch": fetch,
		"produce": c.NewProducer().Produce(t.Context(), "t", 0, values(0, 1)...),
		"ensure":  c.EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: "t"}})} {
		if kafka.ReasonOf(err) != kafka.ReasonConnection || !kafka.Retryable(err) {
			t.Errorf("%s: reason %s: %v", what, kafka.ReasonOf(err), err)
		}
	}
}

func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &key.PublicKey, key)
	must(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
