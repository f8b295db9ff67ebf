package strictyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// A catalogue of a large company; it is read again at each reload.
func BenchmarkDecode(b *testing.B) {
	var text strings.Builder
	text.WriteString("name: n\nentries:\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "  - name: service-%d\n    owner: team-%d\n    tier: 2\n    depends_on: [mysql, redis]\n    words: [a, b, c]\n", i, i%50)
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var c config
		if err := strictyaml.Decode("f.yaml", data, &c); err != nil {
			b.Fatal(err)
		}
	}
}
