-- What analysts ask for. Plain views: they cost nothing until they are read.

CREATE VIEW IF NOT EXISTS ingest_batches
(
    `stream` String COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` String COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition',
    `partition` Int32 COMMENT 'Kafka partition',
    `start_offset` Int64 COMMENT 'first Kafka offset of the batch',
    `end_offset` Int64 COMMENT 'Kafka offset after the last one of the batch',
    `records` UInt64 COMMENT 'Kafka records examined',
    `events` UInt64 COMMENT 'events counted',
    `rejected` UInt64 COMMENT 'records or events that went to dead_letters',
    `late` UInt64 COMMENT 'events that were older than the watermark when they came',
    `rows` UInt64 COMMENT 'data rows of the batch as its marker says',
    `max_event_time` DateTime64(3, 'UTC') COMMENT 'largest event time of the batch, 1970-01-01 if it has none',
    `watermark` DateTime64(3, 'UTC') COMMENT 'watermark of the partition after the batch',
    `record_time` DateTime64(3, 'UTC') COMMENT 'Kafka timestamp of its last record',
    `revision` String COMMENT 'revision of the pipeline file that decoded it',
    `clock` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop when it made the batch',
    `inserted_at` DateTime('UTC') COMMENT 'wall clock of the insert'
)
AS
{{range $i, $s := streams}}{{if $i}}UNION ALL
{{end}}SELECT '{{$s.Name}}' AS stream, topic, incarnation, partition, start_offset, end_offset, marker_records AS records, marker_events AS events,
    marker_rejected AS rejected, marker_late AS late, marker_rows AS rows, marker_max_event_time AS max_event_time, marker_watermark AS watermark,
    marker_record_time AS record_time, marker_revision AS revision, marker_clock AS clock, inserted_at
FROM {{$s.Table}} WHERE marker = 1
{{end}}
COMMENT 'Every batch that was stored in the last 35 days, with what it held.';

CREATE VIEW IF NOT EXISTS ingest_progress
(
    `stream` String COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` String COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition',
    `partition` Int32 COMMENT 'Kafka partition',
    `first_offset` Int64 COMMENT 'first Kafka offset stored in the last 35 days',
    `end_offset` Int64 COMMENT 'Kafka offset after the last one stored',
    `missing_offsets` Int64 COMMENT 'offsets between first_offset and end_offset that no batch covers: 0, or something was lost; below 0, something was read twice',
    `batches` UInt64 COMMENT 'batches stored',
    `records` UInt64 COMMENT 'Kafka records examined: what went in',
    `events` UInt64 COMMENT 'events counted: what came out',
    `rejected` UInt64 COMMENT 'records or events that went to dead_letters',
    `late` UInt64 COMMENT 'events that were older than the watermark when they came',
    `watermark` DateTime64(3, 'UTC') COMMENT 'no event older than this is expected any more',
    `max_event_time` DateTime64(3, 'UTC') COMMENT 'largest event time stored',
    `clock` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop at the last batch or heartbeat; clock - watermark is how far behind the partition is',
    `last_insert` DateTime('UTC') COMMENT 'wall clock of the last batch'
)
AS
SELECT b.stream, b.topic, b.incarnation, b.partition, min(b.start_offset) AS first_offset, max(b.end_offset) AS end_offset,
    max(b.end_offset) - min(b.start_offset) - sum(b.end_offset - b.start_offset) AS missing_offsets, count() AS batches, sum(b.records) AS records,
    sum(b.events) AS events, sum(b.rejected) AS rejected, sum(b.late) AS late, greatest(max(b.watermark), any(h.watermark)) AS watermark,
    max(b.max_event_time) AS max_event_time, greatest(max(b.clock), any(h.clock)) AS clock, max(b.inserted_at) AS last_insert
FROM ingest_batches AS b
LEFT JOIN (SELECT stream, topic, incarnation, partition, watermark, clock FROM heartbeats FINAL) AS h
    ON b.stream = h.stream AND b.topic = h.topic AND b.incarnation = h.incarnation AND b.partition = h.partition
GROUP BY b.stream, b.topic, b.incarnation, b.partition
COMMENT 'How far each topic partition has come, and whether what went in came out.';

CREATE VIEW IF NOT EXISTS failure_rates
(
    `minute` DateTime64(3, 'UTC') COMMENT 'start of the minute of event time',
    `service` String COMMENT 'service of the path',
    `operation` String COMMENT 'operation of the path',
    `access` String COMMENT 'read or write',
    `attributes` Map(String, String) COMMENT 'attribute values; sum over rows for the whole path',
    `requests` UInt64 COMMENT 'requests of any outcome',
    `successes` UInt64 COMMENT 'requests that succeeded',
    `failures` UInt64 COMMENT 'requests that failed by the fault of the service',
    `rejected` UInt64 COMMENT 'requests refused by the fault of the caller, most 4xx',
    `throttled` UInt64 COMMENT 'requests refused to protect the service, such as 429',
    `retries` UInt64 COMMENT 'requests that were not a first try',
    `share` Nullable(Float64) COMMENT 'failure rate: failures / (successes + failures), NULL without any; sum the counts first when you add rows up',
    `accounts_at_least` UInt64 COMMENT 'distinct accounts behind the failures; at 64 there may be more',
    `estimated` UInt8 COMMENT '1 if counts were scaled up from sampled spans'
)
AS
SELECT toStartOfMinute(c.bucket) AS minute, k.service AS service, k.operation AS operation, k.access AS access, k.attributes AS attributes,
    sum(c.successes + c.failures + c.rejected + c.throttled) AS requests, sum(c.successes) AS successes, sum(c.failures) AS failures,
    sum(c.rejected) AS rejected, sum(c.throttled) AS throttled, sum(c.retries) AS retries,
    if(sum(c.successes + c.failures) = 0, NULL, sum(c.failures) / sum(c.successes + c.failures)) AS share,
    least(64, length(groupUniqArrayArray(c.accounts))) AS accounts_at_least, max(c.estimated) AS estimated
FROM tick_cells AS c
INNER JOIN (SELECT id, service, operation, access, attributes FROM keys FINAL) AS k ON k.id = c.key
GROUP BY minute, service, operation, access, attributes
COMMENT 'Requests and failure rates of every path by minute of event time, for the last 35 days. Filter by minute and service.';

CREATE VIEW IF NOT EXISTS tickets_seen
(
    `time` DateTime64(3, 'UTC') COMMENT 'when the customer wrote',
    `id` String COMMENT 'the id of the ticket in the help desk',
    `area` String COMMENT 'product area as the help desk gave it, empty if none',
    `service` String COMMENT 'service that the ticket names, empty if none',
    `account` String COMMENT 'customer organisation, empty if unknown',
    `severity` String COMMENT 'severity as the customer or the help desk set it',
    `subject` String COMMENT 'subject line, secrets and personal data masked',
    `text` String COMMENT 'what the customer wrote, secrets and personal data masked',
    `language` String COMMENT 'language of the text, empty if unknown',
    `source` String COMMENT 'channel: mail, chat, form and the like',
    `tags` Array(String) COMMENT 'tags of the help desk',
    `url` String COMMENT 'page of the ticket',
    `tick` UInt64 COMMENT 'tick of the detector that saw it first'
)
AS
SELECT time, id, area, service, account, severity, subject, text, language, source, tags, url, tick FROM tick_tickets
COMMENT 'Support tickets of the last 35 days, one row each.';

CREATE VIEW IF NOT EXISTS incident_timeline
(
    `incident` String COMMENT 'id of the incident',
    `sequence` UInt64 COMMENT 'number of the event within its incident',
    `at` DateTime64(3, 'UTC') COMMENT 'event time of what happened',
    `known_at` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop when it became known',
    `type` String COMMENT 'what happened: declared, acknowledged, mitigated, resolved and others',
    `by` String COMMENT 'person who did it, empty if no person did',
    `reason` String COMMENT 'what happened and why, in one sentence',
    `state` String COMMENT 'state of the incident after it',
    `severity` String COMMENT 'severity after it',
    `page` UInt8 COMMENT '1 if the incident might wake somebody',
    `muted` String COMMENT 'why it would not although it might',
    `services` Array(String) COMMENT 'services affected so far',
    `failures` UInt64 COMMENT 'failed requests so far',
    `accounts_at_least` UInt64 COMMENT 'distinct customer accounts affected so far',
    `tickets` UInt64 COMMENT 'support tickets attached so far',
    `suspect` String COMMENT 'first suspect at that time'
)
AS
SELECT incident, sequence, at, clock AS known_at, type, `by`, reason, state, severity, page, muted, services, failures, accounts_at_least, tickets, suspect
FROM incident_events
ORDER BY incident, sequence
LIMIT 1 BY incident, sequence
COMMENT 'What happened to each incident, in order. Filter by incident.';

CREATE VIEW IF NOT EXISTS incidents
(
    `incident` String COMMENT 'id of the incident',
    `title` String COMMENT 'title',
    `state` String COMMENT 'suspected, declared, acknowledged, mitigated, resolved, merged or dismissed',
    `severity` String COMMENT 'minor, major or critical',
    `areas` Array(String) COMMENT 'product areas affected',
    `services` Array(String) COMMENT 'services affected',
    `resources` Array(String) COMMENT 'resources involved',
    `started_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when the trouble began, as far as is known',
    `first_finding_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'event time of the first finding',
    `declared_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when it was declared, NULL if it was not',
    `acknowledged_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when a person took it, NULL if nobody did',
    `acknowledged_by` String COMMENT 'who took it',
    `mitigated_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when customers were served again, NULL if they are not',
    `resolved_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when it was over, NULL if it is not',
    `merged_into` String COMMENT 'incident in which it lives on, empty if it was not merged',
    `impact_kind` String COMMENT 'what customers noticed most',
    `requests` UInt64 COMMENT 'requests on the affected paths while they were affected',
    `failures` UInt64 COMMENT 'failures among them',
    `peak_share` Float64 COMMENT 'highest failure rate, from 0 to 1',
    `peak_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when the failure rate was highest',
    `accounts_at_least` UInt64 COMMENT 'distinct customer accounts affected, as far as they are known',
    `tickets` UInt64 COMMENT 'support tickets attached',
    `suspect_kind` String COMMENT 'kind of the first suspect',
    `suspect` String COMMENT 'id of the first suspect',
    `suspect_score` Float64 COMMENT 'how probable it is, from 0 to 1',
    `reason` String COMMENT 'what happened last and why',
    `changed_at` DateTime64(3, 'UTC') COMMENT 'event time of the last event',
    `sequence` UInt64 COMMENT 'number of the last event',
    `details` String COMMENT 'the whole incident, JSON'
)
AS
SELECT incident, title, state, severity, areas, services, resources, started_at, first_finding_at, declared_at, acknowledged_at, acknowledged_by,
    mitigated_at, resolved_at, merged_into, impact_kind, requests, failures, peak_share, peak_at, accounts_at_least, tickets, suspect_kind, suspect,
    suspect_score, reason, at AS changed_at, sequence, after AS details
FROM incident_events
WHERE (incident, sequence) IN (SELECT incident, max(sequence) FROM incident_events GROUP BY incident)
ORDER BY started_at DESC
LIMIT 1 BY incident
COMMENT 'Every incident as it is now, newest first.';
