package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Config is how to reach a cluster.
type Config struct {
	Brokers        []string      `yaml:"brokers"`
	ClientID       string        `yaml:"client_id"`
	TLS            *TLSConfig    `yaml:"tls"`
	SASL           *SASLConfig   `yaml:"sasl"`
	DialTimeout    time.Duration `yaml:"dial_timeout"`
	RequestTimeout time.Duration `yaml:"request_timeout"`
	CommitTimeout  time.Duration `yaml:"commit_timeout"` // After it, the outcome of a commit is unknown.
	MetadataTTL    time.Duration `yaml:"metadata_ttl"`   // How stale the known leaders and partitions may be.
	Compression    string        `yaml:"compression"`    // Of what is produced: none, gzip, snappy, lz4, zstd.
}

// TLSConfig turns TLS on. All fields are optional.
type TLSConfig struct {
	CAFile             string `yaml:"ca_file"`
	CertFile           string `yaml:"cert_file"`
	KeyFile            string `yaml:"key_file"`
	ServerName         string `yaml:"server_name"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

// SASLConfig logs in. The password is read from a file or an environment variable, never from the configuration, and
// again for each connection, so that it can be rotated under a running process.
type SASLConfig struct {
	Mechanism    string `yaml:"mechanism"` // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	PasswordEnv  string `yaml:"password_env"`
}

const (
	defaultClientID       = "tocsin"
	defaultDialTimeout    = 5 * time.Second
	defaultRequestTimeout = 10 * time.Second
	defaultCommitTimeout  = 5 * time.Second
	defaultMetadataTTL    = 6 * time.Second
	defaultCompression    = "lz4"
)

// SetDefaults sets what is left out.
func (c *Config) SetDefaults() {
	setDefault(&c.ClientID, defaultClientID)
	setDefault(&c.DialTimeout, defaultDialTimeout)
	setDefault(&c.RequestTimeout, defaultRequestTimeout)
	setDefault(&c.CommitTimeout, defaultCommitTimeout)
	setDefault(&c.MetadataTTL, defaultMetadataTTL)
	setDefault(&c.Compression, defaultCompression)
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate reports every mistake.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("brokers: at least one host:port is needed"))
	}
	for _, b := range c.Brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			errs = append(errs, fmt.Errorf("brokers: %q is not host:port", b))
		}
	}
	for name, d := range map[string]time.Duration{"dial_timeout": c.DialTimeout, "request_timeout": c.RequestTimeout,
		"commit_timeout": c.CommitTimeout, "metadata_ttl": c.MetadataTTL} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s: %s is not above 0", name, d))
		}
	}
	if _, err := compression(c.Compression); err != nil {
		errs = append(errs, err)
	}
	if c.TLS != nil && (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		errs = append(errs, errors.New("tls: cert_file and key_file go together"))
	}
	if c.SASL != nil {
		errs = append(errs, c.SASL.validate())
	}
	return errors.Join(errs...)
}

func (s *SASLConfig) validate() error {
	var errs []error
	switch s.Mechanism {
	case mechanismPlain, mechanismScram256, mechanismScram512:
	default:
		errs = append(errs, fmt.Errorf("sasl: mechanism %q is none of %s", s.Mechanism,
			strings.Join([]string{mechanismPlain, mechanismScram256, mechanismScram512}, ", ")))
	}
	if s.Username == "" {
		errs = append(errs, errors.New("sasl: username is missing"))
	}
	if (s.PasswordFile == "") == (s.PasswordEnv == "") {
		errs = append(errs, errors.New("sasl: give either password_file or password_env"))
	}
	return errors.Join(errs...)
}

func (t *TLSConfig) build() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read tls ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read tls ca_file %s: no certificate in it", t.CAFile)
		}
	}
	if t.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
			return nil, fmt.Errorf("read tls cert_file and key_file: %w", err)
		}
		// Read again for each handshake: client certificates are renewed under running processes.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			return &cert, err
		}
	}
	return c, nil
}
