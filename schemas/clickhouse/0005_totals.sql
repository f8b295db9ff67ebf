-- Cumulative series, deleted offsets, admitted values and rewinds.
--
-- A point of a cumulative series is a row of cells, so that it is stored with its batch or not at all. Its counts are totals: what
-- happened between two points is found by the tick, which sees all partitions, and goes to tick_cells.

ALTER TABLE cells
    ADD COLUMN IF NOT EXISTS `series` UInt64 COMMENT '0, or the cumulative series that the row is a point of: its counts are totals then, and no requests of their own',
    ADD COLUMN IF NOT EXISTS `series_writer` UInt64 COMMENT 'of a cumulative series: metric and resource that it is written by',
    ADD COLUMN IF NOT EXISTS `series_family` UInt64 COMMENT 'of a cumulative series: its metric',
    ADD COLUMN IF NOT EXISTS `series_start` DateTime64(3, 'UTC') COMMENT 'of a cumulative series: since when its totals count, 1970-01-01 if unknown',
    ADD COLUMN IF NOT EXISTS `series_time` DateTime64(3, 'UTC') COMMENT 'of a cumulative series: event time of the point';

-- Its rows are written after the tick's cells, of which they are a function: a tick that is gathered again finds what it counted by its
-- token, and what it knew here. The newest tick's row of a series says all that is needed of it.
CREATE TABLE IF NOT EXISTS series_totals
(
    `kind` LowCardinality(String) COMMENT 'series: the last point of a series; writer, family: when one was seen first',
    `id` UInt64 COMMENT 'number of the series, writer or family',
    `start` DateTime64(3, 'UTC') COMMENT 'since when the totals count; 1970-01-01 if unknown, and for any start',
    `tick` UInt64 COMMENT 'tick that saw it last',
    `time` DateTime64(3, 'UTC') COMMENT 'series: event time of the last point; writer, family: event time of the first one',
    `count` UInt64 COMMENT 'series: requests since start',
    `latency` Array(UInt64) COMMENT 'series: requests since start by duration, as in cells',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it'
)
{{engine "ReplacingMergeTree" "tick"}}
ORDER BY (kind, id, start)
TTL inserted_at + INTERVAL 3 DAY
{{settings 10000}}
COMMENT 'What is known of cumulative series, so that the next point can be counted. A series that says nothing for 3 days is forgotten.';

{{range streams}}
ALTER TABLE {{.Table}} ADD COLUMN IF NOT EXISTS `marker_gap` UInt64 COMMENT 'marker only: offsets of the range that Kafka had deleted before they were read' AFTER marker_late;
{{end}}

CREATE TABLE IF NOT EXISTS admitted_values
(
    `pipeline` LowCardinality(String) COMMENT 'name of the pipeline',
    `version` UInt64 COMMENT 'number of the change, counted from 1; a batch says up to which one it knew',
    `service` LowCardinality(String) COMMENT 'service whose value it is',
    `attribute` LowCardinality(String) COMMENT 'attribute, or empty for an operation',
    `value` String COMMENT 'value that is counted by its own name; others of the attribute are __other__',
    `retired` UInt8 COMMENT '1 if the value is no longer admitted from this version on',
    `claim` String COMMENT 'random text by which a process knows its own change',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the change'
)
{{engine "MergeTree"}}
ORDER BY (pipeline, version, service, attribute, value)
{{settings 100000}}
COMMENT 'Which attribute values and operations are counted by their own name, as a list of changes. Kept for ever.';

CREATE TABLE IF NOT EXISTS ingest_rewinds
(
    `stream` LowCardinality(String) COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `partition` Int32 COMMENT 'Kafka partition',
    `incarnation` UInt32 COMMENT 'number that the reading after the rewind has',
    `from_offset` Int64 COMMENT 'offset up to which had been read',
    `to_offset` Int64 COMMENT 'offset from which is read again',
    `by` String COMMENT 'who rewound',
    `reason` String COMMENT 'why, in their words',
    `at` DateTime('UTC') COMMENT 'wall clock of the rewind'
)
{{engine "MergeTree"}}
ORDER BY (topic, partition, incarnation)
COMMENT 'Deliberate rewinds: what was counted before from to_offset on is counted again. Kept for ever.';

CREATE OR REPLACE VIEW ingest_batches
(
    `stream` String COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` String COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition, or reading of it after a rewind',
    `partition` Int32 COMMENT 'Kafka partition',
    `start_offset` Int64 COMMENT 'first Kafka offset of the batch',
    `end_offset` Int64 COMMENT 'Kafka offset after the last one of the batch',
    `records` UInt64 COMMENT 'Kafka records examined',
    `events` UInt64 COMMENT 'events counted',
    `rejected` UInt64 COMMENT 'records or events that went to dead_letters',
    `late` UInt64 COMMENT 'events that were older than the watermark when they came',
    `gap` UInt64 COMMENT 'offsets that Kafka had deleted before they were read',
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
    marker_rejected AS rejected, marker_late AS late, marker_gap AS gap, marker_rows AS rows, marker_max_event_time AS max_event_time,
    marker_watermark AS watermark, marker_record_time AS record_time, marker_revision AS revision, marker_clock AS clock, inserted_at
FROM {{$s.Table}} WHERE marker = 1
{{end}}
COMMENT 'Every batch that was stored in the last 35 days, with what it held.';

CREATE OR REPLACE VIEW ingest_audit
(
    `stream` String COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` String COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition, or reading of it after a rewind',
    `partition` Int32 COMMENT 'Kafka partition',
    `start_offset` Int64 COMMENT 'first Kafka offset of the batch',
    `end_offset` Int64 COMMENT 'Kafka offset after the last one of the batch',
    `records` UInt64 COMMENT 'Kafka records examined: fewer than offsets where the topic is compacted or has transactions',
    `events` UInt64 COMMENT 'events counted',
    `rejected` UInt64 COMMENT 'records or events that went to dead_letters',
    `late` UInt64 COMMENT 'events that were older than the watermark when they came',
    `gap` UInt64 COMMENT 'offsets that Kafka had deleted before they were read',
    `hole` Int64 COMMENT 'offsets between the batch before and this one that nothing covers: 0, or something was lost; below 0, that many were read twice',
    `inserted_at` DateTime('UTC') COMMENT 'wall clock of the insert'
)
AS
SELECT stream, topic, incarnation, partition, start_offset, end_offset, records, events, rejected, late, gap,
    start_offset - lagInFrame(end_offset, 1, start_offset) OVER (PARTITION BY stream, topic, incarnation, partition ORDER BY end_offset, start_offset
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS hole, inserted_at
FROM ingest_batches
COMMENT 'Every range of offsets with what became of it, and whether it joins the one before. Kept for 35 days.';

CREATE OR REPLACE VIEW ingest_progress
(
    `stream` String COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` String COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition, or reading of it after a rewind',
    `partition` Int32 COMMENT 'Kafka partition',
    `first_offset` Int64 COMMENT 'first Kafka offset stored in the last 35 days',
    `end_offset` Int64 COMMENT 'Kafka offset after the last one stored',
    `missing_offsets` Int64 COMMENT 'offsets between first_offset and end_offset that no batch covers: 0, or something was lost; below 0, something was read twice',
    `batches` UInt64 COMMENT 'batches stored',
    `records` UInt64 COMMENT 'Kafka records examined: what went in',
    `events` UInt64 COMMENT 'events counted: what came out',
    `rejected` UInt64 COMMENT 'records or events that went to dead_letters',
    `late` UInt64 COMMENT 'events that were older than the watermark when they came',
    `gap` UInt64 COMMENT 'offsets that Kafka had deleted before they were read',
    `watermark` DateTime64(3, 'UTC') COMMENT 'no event older than this is expected any more',
    `max_event_time` DateTime64(3, 'UTC') COMMENT 'largest event time stored',
    `clock` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop at the last batch or heartbeat; clock - watermark is how far behind the partition is',
    `last_insert` DateTime('UTC') COMMENT 'wall clock of the last batch'
)
AS
SELECT b.stream, b.topic, b.incarnation, b.partition, min(b.start_offset) AS first_offset, max(b.end_offset) AS end_offset,
    max(b.end_offset) - min(b.start_offset) - sum(b.end_offset - b.start_offset) AS missing_offsets, count() AS batches, sum(b.records) AS records,
    sum(b.events) AS events, sum(b.rejected) AS rejected, sum(b.late) AS late, sum(b.gap) AS gap, greatest(max(b.watermark), any(h.watermark)) AS watermark,
    max(b.max_event_time) AS max_event_time, greatest(max(b.clock), any(h.clock)) AS clock, max(b.inserted_at) AS last_insert
FROM ingest_batches AS b
LEFT JOIN (SELECT stream, topic, incarnation, partition, watermark, clock FROM heartbeats FINAL) AS h
    ON b.stream = h.stream AND b.topic = h.topic AND b.incarnation = h.incarnation AND b.partition = h.partition
GROUP BY b.stream, b.topic, b.incarnation, b.partition
COMMENT 'How far each topic partition has come, and whether what went in came out.';
