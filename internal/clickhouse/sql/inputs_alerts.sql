SELECT tick, toUnixTimestamp64Milli(time), fingerprint, status, labels, annotations, toUnixTimestamp64Milli(starts_at), toUnixTimestamp64Milli(ends_at), generator_url, receiver
FROM tick_alerts
WHERE tick >= {from:UInt64} AND tick <= {to:UInt64}
