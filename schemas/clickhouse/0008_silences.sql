-- Silences, so that an analyst can ask whether somebody was kept from hearing of an incident, and by whom.
--
-- They live in a Kafka topic and in files beside the outbox, where they count while this database is down. This is a copy. A silence's
-- end only ever moves to an earlier time, so of several copies the one that was ended counts.

CREATE TABLE IF NOT EXISTS silences
(
    `id` String COMMENT 'id of the silence',
    `matchers` Array(String) COMMENT 'which incidents it keeps quiet, as it was written; all have to match',
    `names` Array(String) COMMENT 'of each single matcher: the label',
    `operators` Array(String) COMMENT 'of each single matcher: =, !=, =~ or !~',
    `values` Array(String) COMMENT 'of each single matcher: the value or expression',
    `starts_at` DateTime64(3, 'UTC') COMMENT 'from when it is in force',
    `ends_at` DateTime64(3, 'UTC') COMMENT 'until when; earlier than was asked for where somebody ended it',
    `created_at` DateTime64(3, 'UTC') COMMENT 'when it was made',
    `created_by` String COMMENT 'who made it',
    `comment` String COMMENT 'why',
    `expired_by` String COMMENT 'who ended it before its time, empty if nobody did',
    `expired_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when they did, NULL if nobody did',
    `ended` UInt8 COMMENT '1 if somebody ended it before its time'
)
{{engine "ReplacingMergeTree" "ended"}}
ORDER BY id
TTL toDateTime(ends_at) + INTERVAL 400 DAY
COMMENT 'Silences that were ever made, with who made them and why. Read it with FINAL. Kept for 400 days after their end.';

CREATE OR REPLACE VIEW incident_silences
(
    `incident` String COMMENT 'id of the incident',
    `silence` String COMMENT 'id of the silence',
    `from` DateTime64(3, 'UTC') COMMENT 'since when the silence kept the incident quiet',
    `to` Nullable(DateTime64(3, 'UTC')) COMMENT 'until when, NULL if the incident is open and the silence has no end before it',
    `created_by` String COMMENT 'who made the silence',
    `comment` String COMMENT 'why',
    `matchers` Array(String) COMMENT 'which incidents it keeps quiet'
)
AS
WITH toDateTime64('2105-01-01 00:00:00', 3, 'UTC') AS never
SELECT e.incident AS incident, s.id AS silence, min(greatest(e.at, s.starts_at)) AS `from`,
    nullIf(max(least(e.until, s.ends_at)), never) AS `to`, any(s.created_by) AS created_by, any(s.comment) AS comment, any(s.matchers) AS matchers
FROM
(
    SELECT incident, at,
        leadInFrame(at, 1, if(state IN ('resolved', 'merged', 'dismissed'), at, never)) OVER (PARTITION BY incident ORDER BY sequence
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS until,
        mapUpdate(
            mapUpdate(map('service', services[1], 'area', areas[1], 'resource', resources[1]), mapFilter((k, v) -> v != '', labels)),
            map('severity', toString(severity), 'state', toString(state), 'page', if(page = 1 AND muted = '', 'true', 'false'))) AS told
    FROM (SELECT * FROM incident_events ORDER BY sequence, tick LIMIT 1 BY incident, sequence)
) AS e
CROSS JOIN (SELECT * FROM silences FINAL) AS s
WHERE s.starts_at < e.until AND s.ends_at > e.at AND arrayAll(
    (name, operator, value) -> multiIf(
        operator = '=', told[name] = value,
        operator = '!=', told[name] != value,
        operator = '=~', match(told[name], if(operator = '=~', concat('^(?:', value, ')$'), '')),
        NOT match(told[name], if(operator = '!~', concat('^(?:', value, ')$'), ''))),
    s.names, s.operators, s.values)
GROUP BY incident, silence
ORDER BY `from`
COMMENT 'Which silence kept which incident quiet, and for how long.';
