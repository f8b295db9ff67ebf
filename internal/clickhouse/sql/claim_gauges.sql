INSERT INTO tick_gauges (tick, tick_to, time, resource, metric, value, `limit`, unit, attributes)
SELECT {tick:UInt64} AS tick, fromUnixTimestamp64Milli({to:Int64}, 'UTC') AS tick_to, time, resource, metric, value, `limit`, unit, attributes
FROM gauges
WHERE marker = 0 AND {{template "ranges" .}}
ORDER BY ALL
