-- The new points of cumulative series, each series' together in order of time.
SELECT series, series_writer, series_family, toUnixTimestamp64Milli(series_start), toUnixTimestamp64Milli(series_time), key, successes, failures, rejected, throttled, latency,
    arrayMap(s -> s.1, samples), arrayMap(s -> s.2, samples), arrayMap(s -> s.3, samples), arrayMap(s -> s.4, samples)
FROM cells
WHERE marker = 0 AND series != 0 AND {{template "ranges" .}}
ORDER BY series, series_time, series_start, successes + failures + rejected + throttled, key
