SELECT {{template "warning_columns"}}
FROM warnings
WHERE at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')
ORDER BY tick DESC, position DESC
LIMIT {limit:UInt64}
