// Package schemas embeds the contracts: the JSON schemas of native events and the tables in ClickHouse.
package schemas

import "embed"

// Kafka holds kafka/<event>/v1.schema.json with an example beside each.
//
//go:embed all:kafka
var Kafka embed.FS

// ClickHouse holds the migrations, applied in the order of their names.
//
//go:embed all:clickhouse
var ClickHouse embed.FS
