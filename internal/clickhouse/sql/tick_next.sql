-- When the first tick within a span of event time ended: no row if there is none.
SELECT toUnixTimestamp64Milli(`to`)
FROM ticks
WHERE `to` > fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND `to` <= fromUnixTimestamp64Milli({to:Int64}, 'UTC')
ORDER BY `to`
LIMIT 1
