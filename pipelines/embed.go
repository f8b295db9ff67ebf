// Package pipelines embeds what Tocsin reads from Kafka out of the box, and the tests beside it.
package pipelines

import "embed"

// FS holds the pipelines and their tests.
//
//go:embed *.yaml
var FS embed.FS
