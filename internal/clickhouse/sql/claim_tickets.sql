-- Only ids that no earlier tick saw; of several events of one id the earliest.
INSERT INTO tick_tickets (tick, tick_to, time, id, subject, text, account, area, service, language, source, tags, severity, url, status)
SELECT {tick:UInt64} AS tick, fromUnixTimestamp64Milli({to:Int64}, 'UTC') AS tick_to, time, id, subject, text, account, area, service, language, source, tags, severity, url, status
FROM
(
    SELECT time, id, subject, text, account, area, service, language, source, tags, severity, url, status
    FROM tickets
    WHERE marker = 0 AND {{template "ranges" .}}
    ORDER BY id, time, status, subject, text, account, area, service, language, source, tags, severity, url
    LIMIT 1 BY id
)
WHERE id NOT IN
(
    SELECT id FROM tick_tickets
    WHERE tick < {tick:UInt64} AND id IN (SELECT id FROM tickets WHERE marker = 0 AND {{template "ranges" .}})
)
ORDER BY ALL
