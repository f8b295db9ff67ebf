-- What the ingest loop writes: one insert of one block for each range of offsets, ended by a marker row.
--
-- A base table is sorted with its markers first, so that reading the ledger and reading a tick's new rows are both range reads. It is
-- partitioned by the batch's time, which is the same for whoever inserts the range: ClickHouse remembers insert tokens per storage
-- partition, so a key that could differ between two tries would let both in. No materialised view may hang on a base table.

{{define "range"}}
    `topic` LowCardinality(String) COMMENT 'Kafka topic that the batch was read from',
    `incarnation` UInt32 COMMENT 'life of the topic partition: raised when the topic was deleted and made anew, so that offsets do not mix',
    `partition` Int32 COMMENT 'Kafka partition',
    `start_offset` Int64 COMMENT 'first Kafka offset of the batch',
    `end_offset` Int64 COMMENT 'Kafka offset after the last one of the batch',
    `batch_time` DateTime64(3, 'UTC') COMMENT 'Kafka timestamp of the first record of the batch; chooses the storage partition',
    `marker` UInt8 COMMENT '1 on the one row of each batch that says what the batch holds, 0 on data rows: filter marker = 0 to see data',
{{end}}

{{define "marker"}}
    `marker_rows` UInt64 COMMENT 'marker only: number of data rows in the batch; the batch is complete if so many are there',
    `marker_records` UInt64 COMMENT 'marker only: Kafka records examined',
    `marker_events` UInt64 COMMENT 'marker only: events counted',
    `marker_rejected` UInt64 COMMENT 'marker only: records or events that went to dead_letters',
    `marker_late` UInt64 COMMENT 'marker only: events that were older than the watermark when they came',
    `marker_max_event_time` DateTime64(3, 'UTC') COMMENT 'marker only: largest event time of the batch, 1970-01-01 if it has none',
    `marker_watermark` DateTime64(3, 'UTC') COMMENT 'marker only: no event older than this was expected from the partition after the batch',
    `marker_record_time` DateTime64(3, 'UTC') COMMENT 'marker only: Kafka timestamp of the last record of the batch',
    `marker_revision` LowCardinality(String) COMMENT 'marker only: revision of the pipeline file that decoded the batch',
    `marker_clock` DateTime64(3, 'UTC') COMMENT 'marker only: clock of the ingest loop when it made the batch',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; data rows are deleted by it'
{{end}}

{{define "storage"}}
{{engine "MergeTree"}}
PARTITION BY toYYYYMMDD(batch_time)
TTL inserted_at + INTERVAL 3 DAY DELETE WHERE marker = 0, inserted_at + INTERVAL 35 DAY DELETE WHERE marker = 1
{{end}}

CREATE TABLE IF NOT EXISTS cells
(
{{template "range"}}
    `bucket` DateTime64(3, 'UTC') COMMENT 'start of the 10 seconds of event time that the row counts',
    `key` UInt64 COMMENT 'what is counted: a path with its attribute values, see table keys',
    `successes` UInt64 COMMENT 'requests that succeeded',
    `failures` UInt64 COMMENT 'requests that failed by the fault of the service',
    `rejected` UInt64 COMMENT 'requests refused by the fault of the caller, most 4xx',
    `throttled` UInt64 COMMENT 'requests refused to protect the service, such as 429',
    `retries` UInt64 COMMENT 'requests of any outcome that were not a first try',
    `latency` Array(UInt64) COMMENT 'requests by duration: element i counts those of at most 1 ms * 2^((i-1)/2), element 32 those above; missing elements at the end are 0',
    `accounts` Array(UInt64) COMMENT 'the up to 64 smallest hashes of the accounts behind the failures, ascending: a sketch that counts distinct accounts and can be united',
    `samples` Array(Tuple(hash UInt64, trace_id String, error String, account String)) COMMENT 'up to 3 failed requests as examples, those of the smallest hashes',
    `estimated` UInt8 COMMENT '1 if counts were scaled up from sampled spans',
{{template "marker"}}
)
{{template "storage"}}
ORDER BY (marker, topic, incarnation, partition, end_offset, bucket, key)
{{settings 20000}}
COMMENT 'Requests as counted by the ingest loop, kept for 3 days. A row is what one batch added to one key in one bucket. For analysis use failure_rates.';

CREATE TABLE IF NOT EXISTS gauges
(
{{template "range"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time of the measurement',
    `resource` String COMMENT 'what was measured, such as mysql/collab/primary',
    `metric` LowCardinality(String) COMMENT 'which of its numbers, such as connections',
    `value` Float64 COMMENT 'the measurement',
    `limit` Float64 COMMENT 'the most the value can be, 0 where no limit is known',
    `unit` LowCardinality(String) COMMENT 'unit of value and limit',
    `attributes` Map(LowCardinality(String), String) COMMENT 'further dimensions of the measurement',
{{template "marker"}}
)
{{template "storage"}}
ORDER BY (marker, topic, incarnation, partition, end_offset, resource, metric, time)
{{settings 20000}}
COMMENT 'Measurements of resources as they came from Kafka, kept for 3 days. For analysis use tick_gauges.';

CREATE TABLE IF NOT EXISTS tickets
(
{{template "range"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time: when the customer wrote, or when the ticket changed',
    `id` String COMMENT 'the id of the ticket in the help desk',
    `subject` String COMMENT 'subject line, secrets and personal data masked',
    `text` String COMMENT 'what the customer wrote, secrets and personal data masked' CODEC(ZSTD(3)),
    `account` String COMMENT 'customer organisation, empty if unknown',
    `area` LowCardinality(String) COMMENT 'product area as the help desk gave it, empty if none',
    `service` LowCardinality(String) COMMENT 'service that the ticket names, empty if none',
    `language` LowCardinality(String) COMMENT 'language of the text, empty if unknown',
    `source` LowCardinality(String) COMMENT 'channel: mail, chat, form and the like',
    `tags` Array(String) COMMENT 'tags of the help desk',
    `severity` LowCardinality(String) COMMENT 'severity as the customer or the help desk set it',
    `url` String COMMENT 'page of the ticket',
    `status` LowCardinality(String) COMMENT 'status of the ticket at this event',
{{template "marker"}}
)
{{template "storage"}}
ORDER BY (marker, topic, incarnation, partition, end_offset, id, time)
{{settings 20000}}
COMMENT 'Events of support tickets as they came from Kafka, kept for 3 days; a ticket may come several times. For analysis use tickets_seen.';

CREATE TABLE IF NOT EXISTS changes
(
{{template "range"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time of the phase',
    `id` String COMMENT 'id of the change; events of one id belong together',
    `kind` LowCardinality(String) COMMENT 'deploy, rollback, job, failover, flag, config, migration or maintenance',
    `phase` LowCardinality(String) COMMENT 'started, finished or aborted',
    `target` String COMMENT 'service or resource that is changed, empty if unknown',
    `title` String COMMENT 'what was done, in words',
    `actor` String COMMENT 'who did it',
    `url` String COMMENT 'where it can be looked at',
    `dose` Float64 COMMENT 'how much of the target it touches, from 0 to 1; 0 is unknown',
    `attributes` Map(LowCardinality(String), String) COMMENT 'further dimensions, such as region or version',
{{template "marker"}}
)
{{template "storage"}}
ORDER BY (marker, topic, incarnation, partition, end_offset, id, time)
{{settings 20000}}
COMMENT 'Phases of changes as they came from Kafka, kept for 3 days. For analysis use tick_changes.';

CREATE TABLE IF NOT EXISTS alerts
(
{{template "range"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time: when the alert started, or ended if it is resolved',
    `fingerprint` String COMMENT 'identity of the alert in the other system',
    `status` LowCardinality(String) COMMENT 'firing or resolved',
    `labels` Map(LowCardinality(String), String) COMMENT 'labels of the alert',
    `annotations` Map(LowCardinality(String), String) COMMENT 'annotations of the alert',
    `starts_at` DateTime64(3, 'UTC') COMMENT 'when the alert began, 1970-01-01 if unknown',
    `ends_at` DateTime64(3, 'UTC') COMMENT 'when the alert ended, 1970-01-01 if it did not',
    `generator_url` String COMMENT 'page of the rule that fired',
    `receiver` LowCardinality(String) COMMENT 'receiver that the other system sent it to',
{{template "marker"}}
)
{{template "storage"}}
ORDER BY (marker, topic, incarnation, partition, end_offset, fingerprint, time)
{{settings 20000}}
COMMENT 'Alerts of other systems as they came from Kafka, kept for 3 days. For analysis use tick_alerts.';

CREATE TABLE IF NOT EXISTS keys
(
    `id` UInt64 COMMENT 'the number under which cells and tick_cells count',
    `service` LowCardinality(String) COMMENT 'service of the path',
    `operation` String COMMENT 'operation of the path',
    `access` LowCardinality(String) COMMENT 'read or write',
    `attributes` Map(LowCardinality(String), String) COMMENT 'attribute values that narrow the path',
    `first_seen` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock when the key was stored'
)
{{engine "ReplacingMergeTree"}}
ORDER BY id
COMMENT 'The words behind the key numbers. A key may be there more than once for a while: join it with FINAL.';

CREATE TABLE IF NOT EXISTS topic_partitions
(
    `stream` LowCardinality(String) COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition',
    `partition` Int32 COMMENT 'Kafka partition',
    `first_seen` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock when its first batch was about to be stored'
)
{{engine "ReplacingMergeTree"}}
ORDER BY (stream, topic, incarnation, partition)
COMMENT 'Every topic partition that something was ever stored of.';

CREATE TABLE IF NOT EXISTS heartbeats
(
    `stream` LowCardinality(String) COMMENT 'requests, gauges, tickets, changes or alerts',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition',
    `partition` Int32 COMMENT 'Kafka partition',
    `end_offset` Int64 COMMENT 'offset up to which the partition was read when it had nothing more',
    `watermark` DateTime64(3, 'UTC') COMMENT 'no event older than this is expected from the partition any more',
    `record_time` DateTime64(3, 'UTC') COMMENT 'Kafka timestamp of the last record before end_offset, 1970-01-01 if unknown',
    `revision` LowCardinality(String) COMMENT 'revision of the pipeline file in use',
    `clock` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop at the heartbeat'
)
{{engine "ReplacingMergeTree" "clock"}}
ORDER BY (stream, topic, incarnation, partition)
COMMENT 'Signs of life of partitions that have nothing new; the newest one of each partition counts.';

CREATE TABLE IF NOT EXISTS dead_letters
(
    `stream` LowCardinality(String) COMMENT 'stream that the record was meant for',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `incarnation` UInt32 COMMENT 'life of the topic partition',
    `partition` Int32 COMMENT 'Kafka partition',
    `offset` Int64 COMMENT 'Kafka offset of the record',
    `position` UInt32 COMMENT 'which one it is among the dead letters of its batch; one record can give several',
    `batch_time` DateTime64(3, 'UTC') COMMENT 'Kafka timestamp of the first record of the batch; chooses the storage partition',
    `time` DateTime64(3, 'UTC') COMMENT 'Kafka timestamp of the record',
    `reason` LowCardinality(String) COMMENT 'why it could not be counted, one word of a fixed list',
    `detail` String COMMENT 'what was wrong and where, for people',
    `payload` String COMMENT 'the record, secrets and personal data masked, cut at 64 KiB' CODEC(ZSTD(3)),
    `size` UInt64 COMMENT 'bytes of the whole record',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it'
)
{{engine "MergeTree"}}
PARTITION BY toYYYYMMDD(batch_time)
ORDER BY (topic, incarnation, partition, offset, position)
TTL inserted_at + INTERVAL 35 DAY
{{settings 20000}}
COMMENT 'Records, or single events of them, that could not be counted, with the reason. Kept for 35 days.';
