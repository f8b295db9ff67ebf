package clickhouse

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestConfigDefaults(t *testing.T) {
	var c Config
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	o, err := c.options()
	if err != nil {
		t.Fatal(err)
	}
	if o.Protocol != ch.HTTP || o.Addr[0] != "127.0.0.1:8123" || o.Auth.Database != "tocsin" || o.ReadTimeout != 30*time.Second {
		t.Errorf("options %+v", o)
	}
	native := Config{Protocol: "native"}
	native.SetDefaults()
	if o, err := native.options(); err != nil || o.Protocol != ch.Native || o.Addr[0] != "127.0.0.1:9000" {
		t.Errorf("options %+v, %v", o, err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for want, c := range map[string]Config{
		"neither http nor native": {Protocol: "grpc"},
		"both set":                {Password: "a", PasswordFile: "b"},
		"is not a name":           {Database: "a; DROP"},
		"together":                {TLS: &TLSConfig{CertFile: "a"}},
		"whole days":              {TickRetention: strictyaml.Duration(36 * time.Hour)},
		"negative":                {ConnectionsMax: -1},
	} {
		c.SetDefaults()
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

func TestPasswordStaysOutOfErrors(t *testing.T) {
	db, err := Open(Config{Addresses: []string{"127.0.0.1:1"}, Username: "u", Password: strictyaml.Secret("hunter2")}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Ping(t.Context())
	if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(fmt.Sprintf("%+v %#v", db.cfg, db.cfg), "hunter2") {
		t.Errorf("error %v", err)
	}
}

func TestReasonsAreAClosedSet(t *testing.T) {
	listed := map[Reason]bool{}
	for _, r := range Reasons {
		listed[r] = true
	}
	for code, r := range reasonOfCode {
		if !listed[r] {
			t.Errorf("code %d gives %q, which is not listed", code, r)
		}
	}
	for _, c := range []struct {
		err   error
		want  Reason
		retry bool
	}{
		{&ch.Exception{Code: 252}, ReasonOverloaded, true},
		{&ch.Exception{Code: 319}, ReasonQuorum, true},
		{&ch.Exception{Code: 516}, ReasonAuth, false},
		{&ch.Exception{Code: 99999}, ReasonServer, true},
		{&ch.HTTPError{StatusCode: 503, Err: errors.New("x")}, ReasonUnreachable, true},
		{&ch.HTTPError{StatusCode: 404, Err: &ch.Exception{Code: 60}}, ReasonSchema, false},
		{errors.New("unexpected EOF"), ReasonUnreachable, true},
	} {
		err := fail("outer", fail("inner", c.err))
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.want || e.Retry() != c.retry {
			t.Errorf("%v: %+v, want %s, retry %v", c.err, e, c.want, c.retry)
		}
	}
}
