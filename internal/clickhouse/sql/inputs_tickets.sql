SELECT tick, toUnixTimestamp64Milli(time), id, subject, text, account, area, service, language, source, tags, severity, url, status
FROM tick_tickets
WHERE tick >= {from:UInt64} AND tick <= {to:UInt64}
