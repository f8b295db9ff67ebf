SELECT toUnixTimestamp64Milli(at), toString(rule), toString(kind), toString(previous_state), toString(state), toString(service), operation, toString(access), resource, toString(metric), toString(area), attributes,
    toUnixTimestamp64Milli(active_at), toUnixTimestamp64Milli(fired_at), toUnixTimestamp64Milli(ended_at), value, requests, failures, accounts, labels, annotations,
    explain, partial
FROM findings
WHERE at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')
    AND ({rule:String} = '' OR rule = {rule:String})
    AND ({service:String} = '' OR service = {service:String})
    AND ({resource:String} = '' OR resource = {resource:String})
    AND ({area:String} = '' OR area = {area:String})
ORDER BY tick DESC, position DESC
LIMIT {limit:UInt64}
