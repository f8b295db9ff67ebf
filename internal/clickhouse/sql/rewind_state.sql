-- When anything was last heard of a partition, as far as clocks agree.
SELECT toUnixTimestamp64Milli(max(heard)), toUnixTimestamp64Milli(max(clock)), toUnixTimestamp64Milli(now64(3))
FROM
(
    SELECT toDateTime64(max(inserted_at), 3, 'UTC') AS heard, max(marker_clock) AS clock
    FROM {{.Table}}
    WHERE marker = 1 AND topic = {topic:String} AND partition = {partition:Int32}
    UNION ALL
    SELECT max(h.clock) AS heard, max(h.clock) AS clock
    FROM heartbeats AS h
    WHERE h.stream = {stream:String} AND h.topic = {topic:String} AND h.partition = {partition:Int32}
)
