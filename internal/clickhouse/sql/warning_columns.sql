{{define "warning_columns"}}toUnixTimestamp64Milli(at), resource, toString(metric), value, `limit`, toUnixTimestamp64Milli(exhausted_at), toString(rule), guard, incident, suspects{{end}}
