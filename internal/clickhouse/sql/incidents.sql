SELECT details FROM incidents
WHERE ({all_states:UInt8} OR state IN {states:Array(String)})
    AND ({service:String} = '' OR has(services, {service:String}))
    AND ({area:String} = '' OR has(areas, {area:String}))
    AND coalesce(resolved_at, changed_at) >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
    AND started_at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')
ORDER BY started_at DESC, incident
LIMIT {limit:UInt64}
