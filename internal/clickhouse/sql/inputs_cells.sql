SELECT tick, toUnixTimestamp64Milli(bucket), key, successes, failures, rejected, throttled, retries, latency, accounts,
    arrayMap(s -> s.1, samples), arrayMap(s -> s.2, samples), arrayMap(s -> s.3, samples), arrayMap(s -> s.4, samples), estimated
FROM tick_cells
WHERE tick >= {from:UInt64} AND tick <= {to:UInt64}
