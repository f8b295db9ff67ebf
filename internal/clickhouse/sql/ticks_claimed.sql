-- The ticks that can have seen what happened within a span, each as it was stored first. After a backlog rows are claimed long before
-- they are evaluated, and the first tick of all ends where ingest had come to, later than those after it.
SELECT (SELECT max(epoch) FROM epochs), {{template "tick_columns"}}
FROM ticks
WHERE tick > {tick:UInt64} AND clock > fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND (`to` <= fromUnixTimestamp64Milli({to:Int64}, 'UTC') OR tick = 1)
ORDER BY tick, inserted_at, epoch
LIMIT 1 BY tick
