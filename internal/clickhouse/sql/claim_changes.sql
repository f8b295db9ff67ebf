-- Only phases that no earlier tick saw; of several events of one phase the earliest.
INSERT INTO tick_changes (tick, tick_to, time, id, kind, phase, target, title, actor, url, dose, attributes)
SELECT {tick:UInt64} AS tick, fromUnixTimestamp64Milli({to:Int64}, 'UTC') AS tick_to, time, id, kind, phase, target, title, actor, url, dose, attributes
FROM
(
    SELECT time, id, kind, phase, target, title, actor, url, dose, attributes
    FROM changes
    WHERE marker = 0 AND {{template "ranges" .}}
    ORDER BY id, phase, time, kind, target, title, actor, url, dose, attributes
    LIMIT 1 BY id, phase
)
WHERE (id, phase) NOT IN
(
    SELECT id, phase FROM tick_changes
    WHERE tick < {tick:UInt64} AND id IN (SELECT id FROM changes WHERE marker = 0 AND {{template "ranges" .}})
)
ORDER BY ALL
