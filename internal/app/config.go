// Package app wires the loops, the adapters and the tools into one process. It is the only package that knows all of
// them, and the only one that uses fx: constructors elsewhere work without it. One file is one module; wiring.dot
// is the graph of constructors, held by a test.
package app

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/door"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Config is the daemon's configuration file. Each section is the configuration of the package that it is for.
type Config struct {
	Log        LogConfig                `yaml:"log"`
	HTTP       HTTPConfig               `yaml:"http"`
	Door       door.Config              `yaml:"door"`
	Kafka      KafkaConfig              `yaml:"kafka"`
	ClickHouse clickhouse.Config        `yaml:"clickhouse"`
	Files      FilesConfig              `yaml:"files"`
	Ingest     ingest.Config            `yaml:"ingest"`
	Detect     DetectConfig             `yaml:"detect"`
	Respond    RespondConfig            `yaml:"respond"`
	SelfPage   selfpage.Config          `yaml:"self_page"`
	Heartbeat  selfpage.HeartbeatConfig `yaml:"heartbeat"`
	// ExternalLabels name this installation in templates and messages.
	ExternalLabels map[string]string    `yaml:"external_labels"`
	Places         strictyaml.Positions `yaml:"-"`

	file string
}

// KafkaConfig is the `kafka` section: how to reach the cluster, the group that ingests, and the topics that Tocsin itself
// writes.
type KafkaConfig struct {
	kafka.Config     `yaml:",inline"`
	Group            string              `yaml:"group"`
	SessionTimeout   strictyaml.Duration `yaml:"session_timeout"`
	RebalanceTimeout strictyaml.Duration `yaml:"rebalance_timeout"`
	CommandsTopic    string              `yaml:"commands_topic"`
	OutboxTopic      string              `yaml:"outbox_topic"`
	SilencesTopic    string              `yaml:"silences_topic"` // compacted: silences, who made them and who ended them
	Pos              strictyaml.Pos      `yaml:"-"`
}

// SetDefaults holds what a configuration means that leaves a key out.
func (c *KafkaConfig) SetDefaults() {
	c.Config.SetDefaults()
	c.Group, c.CommandsTopic, c.OutboxTopic, c.SilencesTopic = "tocsin", "tocsin.commands", "tocsin.outbox", "tocsin.silences"
	c.SessionTimeout, c.RebalanceTimeout = strictyaml.Duration(10*time.Second), strictyaml.Duration(30*time.Second)
}

// FilesConfig is the `files` section. A relative path is looked up beside the configuration file; an empty one stands for
// what Tocsin ships with, and for no catalogue.
type FilesConfig struct {
	Pipelines string         `yaml:"pipelines"`
	Rules     string         `yaml:"rules"`
	Routes    string         `yaml:"routes"`
	Catalogue string         `yaml:"catalogue"`
	Pos       strictyaml.Pos `yaml:"-"`
}

// DetectConfig is the `detect` section.
type DetectConfig struct {
	// Poll is how often the ledger is looked at.
	Poll strictyaml.Duration `yaml:"poll"`
	// Hold is how long a partition that lags is waited for, by the ingest clock, before ticks go on without it.
	Hold strictyaml.Duration `yaml:"hold"`
	Pos  strictyaml.Pos      `yaml:"-"`
}

// SetDefaults holds what a configuration means that leaves a key out.
func (c *DetectConfig) SetDefaults() {
	c.Poll, c.Hold = strictyaml.Duration(time.Second), strictyaml.Duration(2*time.Minute)
}

// RespondConfig is the `respond` section.
type RespondConfig struct {
	respond.Settings `yaml:",inline"`
	// DataDir holds the write-ahead file of the outbox.
	DataDir string              `yaml:"data_dir"`
	Poll    strictyaml.Duration `yaml:"poll"`
	Pos     strictyaml.Pos      `yaml:"-"`
}

// SetDefaults holds what a configuration means that leaves a key out.
func (c *RespondConfig) SetDefaults() {
	c.DataDir, c.Poll = "data", strictyaml.Duration(500*time.Millisecond)
}

// LoadConfig reads a configuration file. All its mistakes come back together, each with its place.
func LoadConfig(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return ParseConfig(file, data)
}

// ParseConfig reads a configuration from data; file is for messages and for relative paths.
func ParseConfig(file string, data []byte) (*Config, error) {
	c := &Config{file: file}
	// Sections that a file leaves out altogether have their defaults too.
	for _, d := range []strictyaml.Defaulter{&c.Log, &c.HTTP, &c.Door, &c.Kafka, &c.ClickHouse, &c.Ingest, &c.Detect, &c.Respond, &c.SelfPage} {
		d.SetDefaults()
	}
	if err := strictyaml.Decode(file, data, c); err != nil {
		return nil, err
	}
	errs := append(c.Log.check(), c.HTTP.check()...)
	for _, s := range []struct {
		section string
		err     error
	}{
		{"kafka", c.Kafka.Validate()}, {"clickhouse", c.ClickHouse.Validate()}, {"ingest", c.Ingest.Validate()}, {"door", c.Door.Validate()},
	} {
		errs.Add(c.Places.Of(s.section), s.err)
	}
	if c.Kafka.Group == "" || c.Kafka.CommandsTopic == "" || c.Kafka.OutboxTopic == "" || c.Kafka.SilencesTopic == "" {
		errs = append(errs, c.Kafka.Pos.Errorf("kafka: group, commands_topic, outbox_topic and silences_topic must not be empty"))
	}
	if c.Detect.Poll <= 0 || c.Respond.Poll <= 0 {
		errs = append(errs, c.Places.Of("detect").Errorf("detect, respond: poll must be above 0"))
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// path makes a path of the file absolute, relative to the configuration's folder.
func (c *Config) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(c.file), p)
}

// dir is a folder named in the configuration, or what Tocsin ships with.
func (c *Config) dir(p string, shipped fs.FS) fs.FS {
	if p == "" {
		return shipped
	}
	return os.DirFS(c.path(p))
}
