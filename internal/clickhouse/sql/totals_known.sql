-- What is known of series, writers or families.
SELECT id, toUnixTimestamp64Milli(start), toUnixTimestamp64Milli(time), count, latency
FROM series_totals FINAL
WHERE kind = {kind:String} AND id IN {ids:Array(UInt64)}
