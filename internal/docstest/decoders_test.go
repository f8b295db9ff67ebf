package docstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/pipeline"
)

func TestTableOfDecodersIsWhatTheCodeSays(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| decoder | streams | reads |\n|---|---|---|\n")
	for _, d := range pipeline.Decoders {
		e, ok := decode.ByName(d.Name)
		if !ok {
			t.Fatalf("no decoder %q", d.Name)
		}
		streams := make([]string, len(d.Streams))
		for i, s := range d.Streams {
			streams[i] = string(s)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, strings.Join(streams, ", "), strings.ReplaceAll(e.Summary, "|", `\|`))
	}
	generated(t, "docs/ingest.md", "decoders", b.String()+"\n")
}
