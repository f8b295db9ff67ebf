SELECT {{template "finding_columns"}}
FROM findings
WHERE at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')
    AND ({rule:String} = '' OR rule = {rule:String})
    AND ({service:String} = '' OR service = {service:String})
    AND ({resource:String} = '' OR resource = {resource:String})
    AND ({area:String} = '' OR area = {area:String})
ORDER BY tick DESC, position DESC
LIMIT {limit:UInt64}
