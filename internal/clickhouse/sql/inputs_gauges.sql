SELECT tick, toUnixTimestamp64Milli(time), resource, metric, value, `limit`, unit, attributes
FROM tick_gauges
WHERE tick >= {from:UInt64} AND tick <= {to:UInt64}
