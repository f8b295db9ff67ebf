-- The whole path: its slices summed.
SELECT toUnixTimestamp64Milli(minute) AS m, sum(f.requests), sum(f.successes), sum(f.failures), sum(f.rejected), sum(f.throttled), sum(f.retries)
FROM failure_rates AS f
WHERE minute >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND minute < fromUnixTimestamp64Milli({to:Int64}, 'UTC')
    AND service = {service:String} AND operation = {operation:String} AND access = {access:String}
GROUP BY m
ORDER BY m
