-- The newest transition of each finding among those of ticks that are done.
SELECT {{template "finding_columns"}}
FROM findings
WHERE tick > {after:UInt64} AND tick <= {done:UInt64} AND at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND kind != 'high_impact'
ORDER BY tick DESC, position DESC
LIMIT 1 BY rule, service, operation, access, resource, metric, area, toString(mapSort(attributes))
