{{define "finding_columns"}}toUnixTimestamp64Milli(at), toString(rule), toString(kind), toString(previous_state), toString(state), toString(service), operation, toString(access), resource, toString(metric), toString(area), attributes,
    toUnixTimestamp64Milli(active_at), toUnixTimestamp64Milli(fired_at), toUnixTimestamp64Milli(ended_at), value, requests, failures, accounts, labels, annotations,
    explain, partial{{end}}
