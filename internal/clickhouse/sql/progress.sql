-- Batches beyond what is known already, with whether their rows are all there.
{{range $i, $s := .}}{{if $i}}UNION ALL
{{end}}SELECT '{{$s.Name}}' AS stream, toString(topic) AS topic, incarnation, partition, start_offset, end_offset,
    countIf(marker = 1) > 0 AND (countIf(marker = 0) = max(marker_rows) OR (countIf(marker = 0) = 0 AND max(inserted_at) < now() - INTERVAL 1 DAY)) AS complete,
    toUnixTimestamp64Milli(max(marker_watermark)) AS watermark, toUnixTimestamp64Milli(max(marker_clock)) AS clock
FROM {{$s.Table}}
WHERE marker IN (0, 1) AND {{template "ranges" $s.Ranges}}
GROUP BY topic, incarnation, partition, start_offset, end_offset
{{end}}
