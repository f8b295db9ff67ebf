SELECT tick, toUnixTimestamp64Milli(time), id, kind, phase, target, title, actor, url, dose, attributes
FROM tick_changes
WHERE tick >= {from:UInt64} AND tick <= {to:UInt64}
