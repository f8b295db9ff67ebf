// Package rules embeds the rules and routes that Tocsin ships with.
package rules

import "embed"

// FS holds <area>/<rule>.yaml with <rule>_test.yaml beside it, and routes.yaml.
//
//go:embed all:*
var FS embed.FS
