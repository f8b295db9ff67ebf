SELECT (SELECT max(epoch) FROM epochs), {{template "tick_columns"}}
FROM ticks
WHERE tick > {tick:UInt64}
ORDER BY tick, inserted_at, epoch
LIMIT 1 BY tick
