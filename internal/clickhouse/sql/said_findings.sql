-- What ticks that are done have concluded, in order.
SELECT tick, {{template "finding_columns"}}
FROM findings
WHERE tick BETWEEN {from:UInt64} AND {to:UInt64} AND tick IN (SELECT tick FROM ticks_done WHERE tick BETWEEN {from:UInt64} AND {to:UInt64})
ORDER BY tick, position
