-- The tick as it was stored first, and who leads by now.
SELECT (SELECT max(epoch) FROM epochs), {{template "tick_columns"}}
FROM ticks
WHERE tick = {tick:UInt64}
ORDER BY inserted_at, epoch
LIMIT 1
