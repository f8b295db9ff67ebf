SELECT toUnixTimestamp64Milli(at), resource, toString(metric), value, `limit`, toUnixTimestamp64Milli(exhausted_at), toString(rule), guard, incident, suspects
FROM warnings
WHERE at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')
ORDER BY tick DESC, position DESC
LIMIT {limit:UInt64}
