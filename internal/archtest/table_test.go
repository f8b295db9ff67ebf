package archtest

// The tiers, lowest first. A package imports lower tiers freely, its own tier only as its row says, higher tiers never.
type tier int

const (
	asset   tier = iota // files with an embed.go, nothing else
	leaf                // types everybody speaks
	model               // file syntax and its meaning
	loop                // ingest, detect, respond: they never meet in code
	adapter             // what implements the interfaces of the loops
	tool                // what people use around the loops
	wiring              // app
	command             // main packages
)

var tierNames = map[tier]string{
	asset: "asset", leaf: "leaf", model: "model", loop: "loop", adapter: "adapter", tool: "tool", wiring: "app", command: "cmd",
}

// row is one package, or with /... a package and all below it, which then may import each other. The most exact row
// holds. Packages that do not exist yet may have rows.
type row struct {
	pattern string
	tier    tier
	also    []string // patterns it may import beside the lower tiers
}

// Adapters are imported by app and by the rows that name them in also. Packages whose name ends in "test" support
// tests: they may import anything, and only tests and other such packages import them.
var table = []row{
	{"schemas/...", asset, nil},
	{"rules/...", asset, nil},
	{"pipelines/...", asset, nil},
	{"deploy/...", asset, nil},
	{"docs/...", asset, nil},
	{"cmd/chlocal/lib", asset, nil},

	{"internal/strictyaml", leaf, nil},
	{"internal/nth", leaf, nil},
	{"internal/signal", leaf, nil},
	{"internal/signal/...", leaf, []string{"internal/signal"}},
	{"internal/incident", leaf, []string{"internal/signal"}},

	{"internal/catalogue", model, nil},
	{"internal/rule", model, []string{"internal/catalogue"}},
	{"internal/pipeline", model, nil},

	{"internal/ingest/...", loop, nil},
	{"internal/detect/...", loop, nil},
	{"internal/respond", loop, nil},
	{"internal/respond/route", loop, nil},
	{"internal/respond/outbox", loop, nil},
	{"internal/respond/silence", loop, []string{"internal/respond/route"}}, // a silence's matchers are a route's
	{"internal/respond/silence", loop, nil},

	{"internal/respond/...", adapter, nil}, // the receivers: pagerduty, slack, statuspage, webhook, guard…
	{"internal/clickhouse/...", adapter, nil},
	{"internal/kafka/...", adapter, nil},
	{"internal/chlocal", adapter, nil},
	{"internal/kafkalocal", adapter, nil},

	{"internal/scenario/...", tool, nil},
	{"internal/standin/...", tool, nil},
	{"internal/report/...", tool, nil},
	{"internal/door", tool, nil},
	{"internal/console/...", tool, []string{"internal/report/..."}},
	{"internal/backtest/...", tool, []string{"internal/scenario/...", "internal/report/..."}},
	{"internal/measured", tool, nil},
	{"internal/evidencebench/...", tool, []string{"internal/measured"}},
	{"internal/demo/...", tool, []string{"internal/scenario/...", "internal/standin/...", "internal/chlocal", "internal/kafkalocal", "internal/kafka/...", "internal/console"}},
	{"internal/cli/...", tool, []string{"internal/scenario/...", "internal/report/...", "internal/backtest/...", "internal/demo/...", "internal/console/..."}},
	{"internal/tools/...", tool, nil},
	{"internal/chaos", tool, []string{"internal/scenario/wire", "internal/chlocal", "internal/kafkalocal", "internal/kafka", "internal/kafka/realkafka"}},
	{"internal/chaos/...", tool, []string{"internal/chaos"}},
	{"internal/benchingest", tool, []string{"internal/scenario/wire", "internal/clickhouse", "internal/chlocal", "internal/kafkalocal", "internal/kafka", "internal/measured"}},
	{"internal/benchdetect", tool, []string{"internal/clickhouse", "internal/chlocal", "internal/measured"}},
	{"internal/archtest", tool, nil},

	{"internal/app/...", wiring, nil},

	{"cmd/tocsin/...", command, nil},
	{"cmd/chlocal/...", command, []string{"internal/chlocal"}},
}

// Packages that test what users bring, and are no support of our own tests.
var namedTest = []string{"internal/archtest", "internal/backtest", "internal/detect/ruletest"}

// Modules that only some packages may import, with the packages; tests are free.
var modules = map[string][]string{
	"go.uber.org/fx":                      {"internal/app/..."},
	"go.uber.org/dig":                     {"internal/app/..."},
	"github.com/segmentio/kafka-go":       {"internal/kafka/...", "internal/kafkalocal", "internal/demo/...", "internal/benchingest", "internal/chaos"},
	"github.com/ClickHouse/clickhouse-go": {"internal/clickhouse/...", "internal/chlocal"},
	"github.com/twmb/franz-go":            {"internal/kafkalocal"},
	"github.com/slack-go/slack":           {"internal/respond/..."},
	"github.com/ebitengine/purego":        {"cmd/chlocal/..."},
	"github.com/spf13/cobra":              {"internal/cli/...", "cmd/tocsin/..."},
	"github.com/rogpeppe/go-internal":     {},
	"github.com/google/go-cmp":            {},
	"go.uber.org/goleak":                  {},
}

const maxLines = 400 // of a Go file, tests and generated files aside

// Files that are longer for a reason.
var longFiles = map[string]string{}

// Packages that start goroutines without a leak check, with the reason.
var unchecked = map[string]string{}
