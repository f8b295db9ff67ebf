INSERT INTO tick_cells (tick, tick_to, bucket, key, successes, failures, rejected, throttled, retries, latency, accounts, samples, estimated)
SELECT {tick:UInt64} AS tick, fromUnixTimestamp64Milli({to:Int64}, 'UTC') AS tick_to, bucket, key, sum(successes), sum(failures), sum(rejected), sum(throttled), sum(retries),
    sumForEach(latency), arraySlice(arraySort(groupUniqArrayArray(accounts)), 1, 64), arraySlice(arraySort(s -> s.1, groupUniqArrayArray(samples)), 1, 3), max(estimated)
FROM cells
WHERE marker = 0 AND series = 0 AND {{template "ranges" .}}
GROUP BY bucket, key
ORDER BY ALL
