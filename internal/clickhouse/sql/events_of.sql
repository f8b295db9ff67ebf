SELECT {{template "event_columns"}}
FROM incident_events
WHERE incident = {incident:String}
ORDER BY sequence, tick
LIMIT 1 BY sequence
