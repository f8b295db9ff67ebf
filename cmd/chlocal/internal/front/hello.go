package front

import (
	"bytes"
	"encoding/binary"
)

// helloQuery is clickhouse-go's handshake over HTTP, word for word.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

// hello answers the handshake in the Native layout of revision 0, with one difference to the truth: revision() is 0.
// The engine cannot be told a client's protocol version and always writes that layout; a client that is told revision 0
// reads exactly it.
func hello(version string) []byte {
	var b bytes.Buffer
	text := func(s string) {
		b.Write(binary.AppendUvarint(nil, uint64(len(s))))
		b.WriteString(s)
	}
	column := func(name, kind string) {
		text(name)
		text(kind)
	}
	const columns, rows = 4, 1
	// clickhouse-go decodes this one answer by its own revision: block info first, and a byte for custom
	// serialisation after each type.
	b.Write([]byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0})
	b.Write([]byte{columns, rows})
	for _, c := range []struct{ name, value string }{{"displayName()", "chlocal"}, {"version()", version}, {"revision()", ""}, {"timezone()", "UTC"}} {
		if c.name == "revision()" {
			column(c.name, "UInt32")
			b.Write([]byte{0, 0, 0, 0, 0})
			continue
		}
		column(c.name, "String")
		b.WriteByte(0)
		text(c.value)
	}
	return b.Bytes()
}
