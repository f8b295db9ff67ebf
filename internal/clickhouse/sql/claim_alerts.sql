INSERT INTO tick_alerts (tick, tick_to, time, fingerprint, status, labels, annotations, starts_at, ends_at, generator_url, receiver)
SELECT {tick:UInt64} AS tick, fromUnixTimestamp64Milli({to:Int64}, 'UTC') AS tick_to, time, fingerprint, status, labels, annotations, starts_at, ends_at, generator_url, receiver
FROM alerts
WHERE marker = 0 AND {{template "ranges" .}}
ORDER BY ALL
