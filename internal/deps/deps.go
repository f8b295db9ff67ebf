package deps

import (
 _ "github.com/segmentio/kafka-go"
 _ "github.com/ClickHouse/clickhouse-go/v2"
 _ "github.com/prometheus/common/promslog"
 _ "github.com/prometheus/client_golang/prometheus/promhttp"
 _ "github.com/slack-go/slack"
 _ "go.uber.org/fx"
 _ "github.com/twmb/franz-go/pkg/kfake"
 _ "go.opentelemetry.io/proto/otlp/collector/trace/v1"
 _ "go.opentelemetry.io/proto/otlp/trace/v1"
 _ "github.com/spf13/cobra"
 _ "go.yaml.in/yaml/v3"
 _ "github.com/google/go-cmp/cmp"
 _ "golang.org/x/sync/errgroup"
 _ "github.com/rogpeppe/go-internal/testscript"
 _ "go.uber.org/goleak"
 _ "github.com/ebitengine/purego"
 _ "github.com/klauspost/compress/zstd"
)
