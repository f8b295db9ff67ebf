-- The newest life of the partition; within it the furthest offset, and what was said about it last.
SELECT
    incarnation,
    max(end_offset) AS last_offset,
    toUnixTimestamp64Milli(argMax(record_time, (end_offset, record_time))) AS record_time,
    toUnixTimestamp64Milli(max(watermark)) AS watermark
FROM
(
    SELECT incarnation, end_offset, marker_record_time AS record_time, marker_watermark AS watermark
    FROM {{.Table}}
    WHERE marker = 1 AND topic = {topic:String} AND partition = {partition:Int32}
    UNION ALL
    SELECT incarnation, end_offset, record_time, watermark
    FROM heartbeats
    WHERE stream = {stream:String} AND topic = {topic:String} AND partition = {partition:Int32}
)
GROUP BY incarnation
ORDER BY incarnation DESC
LIMIT 1
