-- A marker without its rows is old: data rows are deleted before markers, and a block is never there in part.
SELECT count() > 0 AND sum(complete) > 0
FROM
(
    SELECT countIf(marker = 1) > 0 AND (countIf(marker = 0) = max(marker_rows) OR (countIf(marker = 0) = 0 AND max(inserted_at) < now() - INTERVAL 1 DAY)) AS complete
    FROM {{.Table}}
    WHERE marker IN (0, 1) AND topic = {topic:String} AND incarnation = {incarnation:UInt32} AND partition = {partition:Int32}
        AND end_offset = {end:Int64} AND start_offset = {start:Int64}
    GROUP BY start_offset, end_offset
)
