-- What the new points of cumulative series are of. No rows where there are no points, which is a look at one column.
SELECT series, series_writer, series_family, toUnixTimestamp64Milli(series_start), toUnixTimestamp64Milli(min(series_time))
FROM cells
WHERE marker = 0 AND series != 0 AND {{template "ranges" .}}
GROUP BY series, series_writer, series_family, series_start
