package wire

import "google.golang.org/protobuf/encoding/protowire"

// AppendText appends a KeyValue with its length, for writers that make millions of spans without an object for each.
func AppendText(b []byte, k, v string) []byte {
	n := 1 + protowire.SizeBytes(len(v))
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(k))+1+protowire.SizeBytes(n)))
	b = protowire.AppendString(append(b, 0x0a), k)
	b = protowire.AppendVarint(append(b, 0x12), uint64(n))
	return protowire.AppendString(append(b, 0x0a), v)
}

// AppendNumber does so with an integer.
func AppendNumber(b []byte, k string, v int64) []byte {
	n := 1 + protowire.SizeVarint(uint64(v))
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(k))+1+protowire.SizeBytes(n)))
	b = protowire.AppendString(append(b, 0x0a), k)
	b = protowire.AppendVarint(append(b, 0x12), uint64(n))
	return protowire.AppendVarint(append(b, 0x18), uint64(v))
}
