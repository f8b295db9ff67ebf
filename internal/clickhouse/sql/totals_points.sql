-- The new points of cumulative series, after what is known of each.
SELECT known, series, writer, family, toUnixTimestamp64Milli(start), toUnixTimestamp64Milli(time), key, successes, failures, rejected, throttled, latency,
    arrayMap(s -> s.1, samples), arrayMap(s -> s.2, samples), arrayMap(s -> s.3, samples), arrayMap(s -> s.4, samples)
FROM
(
    SELECT toUInt8(0) AS known, series, series_writer AS writer, series_family AS family, series_start AS start, series_time AS time, key,
        successes, failures, rejected, throttled, latency, samples
    FROM cells
    WHERE marker = 0 AND series != 0 AND {{template "ranges" .}}
    UNION ALL
    SELECT toUInt8(1), id, 0, 0, start, time, 0, count, 0, 0, 0, latency, []
    FROM series_totals FINAL
    WHERE kind = 'series' AND id IN (SELECT series FROM cells WHERE marker = 0 AND series != 0 AND {{template "ranges" .}})
)
ORDER BY series, known DESC, time, start, successes + failures + rejected + throttled, key
