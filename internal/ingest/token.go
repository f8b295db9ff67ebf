package ingest

import "strconv"

// Token names the range: an insert under it is stored once, whoever repeats it.
func (r Range) Token() string {
	b := make([]byte, 0, len(r.Topic)+48)
	b = append(b, r.Topic...)
	b = append(b, '/')
	b = strconv.AppendUint(b, uint64(r.Incarnation), 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(r.Partition), 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, r.Start, 10)
	b = append(b, '-')
	return string(strconv.AppendInt(b, r.End, 10))
}

// Token names the batch. Heartbeats cover no offsets, so their clock tells them apart.
func (b *Batch) Token() string {
	if b.Marker.Heartbeat {
		return b.Range.Token() + "/heartbeat/" + strconv.FormatInt(b.Marker.Clock.UnixMilli(), 10)
	}
	return b.Range.Token()
}
