{{define "event_columns"}}tick, position, incident, sequence, toUnixTimestamp64Milli(at), toUnixTimestamp64Milli(clock), toString(type), `by`, reason, after{{end}}
