-- Whole ticks: the last one is read to its end, even beyond the limit.
SELECT {{template "event_columns"}}
FROM incident_events
WHERE tick > {after:UInt64} AND tick <= {head:UInt64}
ORDER BY tick
LIMIT {limit:UInt64} WITH TIES
