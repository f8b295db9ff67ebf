-- The newest event of each incident that is open, or ended since.
SELECT {{template "event_columns"}}
FROM incident_events
WHERE (incident, sequence) IN
(
    SELECT incident, max(sequence) FROM incident_events WHERE tick <= {head:UInt64}
    GROUP BY incident
    HAVING argMax(state, sequence) IN {open:Array(String)} OR argMax(at, sequence) >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
)
ORDER BY incident, sequence, tick
LIMIT 1 BY incident
