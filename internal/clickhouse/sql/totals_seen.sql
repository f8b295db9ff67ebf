-- When writers and families of new points were seen first, be it now. No rows where there are no points.
WITH news AS
(
    SELECT series_writer AS writer, series_family AS family, series_start AS start, min(series_time) AS time
    FROM cells
    WHERE marker = 0 AND series != 0 AND {{template "ranges" .}}
    GROUP BY writer, family, start
)
SELECT toString(kind), id, toUnixTimestamp64Milli(start), toUnixTimestamp64Milli(min(time))
FROM
(
    SELECT 'writer' AS kind, writer AS id, start, time FROM news
    UNION ALL
    SELECT 'writer' AS kind, writer AS id, toDateTime64(0, 3, 'UTC') AS start, time FROM news
    UNION ALL
    SELECT 'family' AS kind, family AS id, toDateTime64(0, 3, 'UTC') AS start, time FROM news
    UNION ALL
    SELECT toString(kind) AS kind, id, start, time FROM series_totals
    WHERE kind = 'writer' AND id IN (SELECT writer FROM news) AND start IN (SELECT arrayJoin([start, toDateTime64(0, 3, 'UTC')]) FROM news)
        OR kind = 'family' AND id IN (SELECT family FROM news)
)
GROUP BY kind, id, start
ORDER BY kind, id, start
