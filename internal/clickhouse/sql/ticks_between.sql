-- The ticks that ended within a span of event time, each as it was stored first.
SELECT (SELECT max(epoch) FROM epochs), {{template "tick_columns"}}
FROM ticks
WHERE tick > {tick:UInt64} AND `to` > fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND `to` <= fromUnixTimestamp64Milli({to:Int64}, 'UTC')
ORDER BY tick, inserted_at, epoch
LIMIT 1 BY tick
