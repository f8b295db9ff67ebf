package clickhouse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Config says which ClickHouse to use. The zero value with SetDefaults is one on this machine.
type Config struct {
	// Addresses are host:port; further ones are tried when the first does not answer.
	Addresses []string `yaml:"addresses"`
	// Protocol is http or native.
	Protocol     string              `yaml:"protocol"`
	Database     string              `yaml:"database"`
	Username     string              `yaml:"username"`
	Password     strictyaml.Secret   `yaml:"password"`
	PasswordFile string              `yaml:"password_file"`
	TLS          *TLSConfig          `yaml:"tls"`
	DialTimeout  strictyaml.Duration `yaml:"dial_timeout"`
	// RequestTimeout bounds one insert or query. An insert that runs into it may be stored all the same: it is repeated
	// under its token.
	RequestTimeout strictyaml.Duration `yaml:"request_timeout"`
	ConnectionsMax int                 `yaml:"connections_max"`
	// InsertQuorum is sent with every insert where set: auto or a number. Only a cluster needs it.
	InsertQuorum string `yaml:"insert_quorum"`
	// TickRetention is how long tick inputs are kept: how far back a backtest of stored history is exact. In whole days.
	TickRetention strictyaml.Duration `yaml:"tick_retention"`
}

// TLSConfig is used for the connection where present.
type TLSConfig struct {
	CAFile             string `yaml:"ca_file"`
	CertFile           string `yaml:"cert_file"`
	KeyFile            string `yaml:"key_file"`
	ServerName         string `yaml:"server_name"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

var databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// SetDefaults fills in what was left out.
func (c *Config) SetDefaults() {
	if c.Protocol == "" {
		c.Protocol = "http"
	}
	if len(c.Addresses) == 0 {
		c.Addresses = []string{map[bool]string{true: "127.0.0.1:9000", false: "127.0.0.1:8123"}[c.Protocol == "native"]}
	}
	if c.Database == "" {
		c.Database = "tocsin"
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = strictyaml.Duration(5 * time.Second)
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = strictyaml.Duration(30 * time.Second)
	}
	if c.TickRetention == 0 {
		c.TickRetention = strictyaml.Duration(35 * day)
	}
	if c.ConnectionsMax == 0 {
		c.ConnectionsMax = 16
	}
}

// Validate tells what cannot work, without connecting.
func (c *Config) Validate() error {
	var errs []error
	if c.Protocol != "http" && c.Protocol != "native" {
		errs = append(errs, fmt.Errorf("clickhouse protocol %q is neither http nor native", c.Protocol))
	}
	if !databaseName.MatchString(c.Database) {
		errs = append(errs, fmt.Errorf("clickhouse database %q is not a name of letters, digits and _", c.Database))
	}
	if c.Password != "" && c.PasswordFile != "" {
		errs = append(errs, errors.New("clickhouse password and password_file are both set"))
	}
	if r := c.TickRetention.Std(); r < day || r%day != 0 {
		errs = append(errs, fmt.Errorf("clickhouse tick_retention %s is not a number of whole days", c.TickRetention))
	}
	if c.ConnectionsMax < 0 {
		errs = append(errs, fmt.Errorf("clickhouse connections_max %d is negative", c.ConnectionsMax))
	}
	if t := c.TLS; t != nil && (t.CertFile == "") != (t.KeyFile == "") {
		errs = append(errs, errors.New("clickhouse tls needs cert_file and key_file together"))
	}
	return errors.Join(errs...)
}

func (c *Config) options() (*ch.Options, error) {
	password, err := strictyaml.ResolveSecret(c.Password, c.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("clickhouse password: %w", err)
	}
	o := &ch.Options{
		Addr:         c.Addresses,
		Auth:         ch.Auth{Database: c.Database, Username: c.Username, Password: password.Reveal()},
		Protocol:     ch.HTTP,
		Compression:  &ch.Compression{Method: ch.CompressionLZ4},
		DialTimeout:  c.DialTimeout.Std(),
		ReadTimeout:  c.RequestTimeout.Std(),
		MaxOpenConns: c.ConnectionsMax,
		MaxIdleConns: c.ConnectionsMax,
		DialStrategy: dialPlainly,
	}
	if c.Protocol == "native" {
		o.Protocol = ch.Native
	}
	if c.TLS != nil {
		if o.TLS, err = c.TLS.config(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// dialPlainly opens a connection without the settings of the statement that needs it: the driver greets the server under the
// same context, and a greeting is not the compressed body that an insert announces. With them no connection could be opened
// again after all had been lost.
func dialPlainly(ctx context.Context, id int, o *ch.Options, dial ch.Dial) (ch.DialResult, error) {
	return ch.DefaultDialStrategy(ch.Context(ctx, ch.WithSettings(ch.Settings{})), id, o, dial)
}

func (t *TLSConfig) config() (*tls.Config, error) {
	out := &tls.Config{ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify, MinVersion: tls.VersionTLS12} //nolint:gosec // asked for by name
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("clickhouse tls ca_file: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("clickhouse tls ca_file %s holds no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("clickhouse tls cert_file: %w", err)
		}
		out.Certificates = []tls.Certificate{cert}
	}
	return out, nil
}
