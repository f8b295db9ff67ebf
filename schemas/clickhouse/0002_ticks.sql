-- What the detector saw: each tick's record and its inputs, from which the same conclusions can be drawn again.
--
-- Tables that hold a tick are partitioned by its number alone. Insert tokens are remembered per storage partition, and it is the
-- token that lets only one row win where two detectors claim the same tick: two claims must never fall into different partitions.

{{define "tick"}}
    `tick` UInt64 COMMENT 'number of the tick that saw the row first',
    `tick_to` DateTime64(3, 'UTC') COMMENT 'event time up to which that tick evaluated',
{{end}}

{{define "tick_storage"}}
{{engine "MergeTree"}}
PARTITION BY intDiv(tick, 10000)
TTL inserted_at + INTERVAL 35 DAY
{{end}}

CREATE TABLE IF NOT EXISTS epochs
(
    `epoch` UInt64 COMMENT 'number of the leadership; the highest one leads',
    `owner` String COMMENT 'process that took the lead, for people',
    `claim` String COMMENT 'random text by which the process knows its own claim',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'wall clock of the claim'
)
{{engine "MergeTree"}}
ORDER BY epoch
{{settings 10000}}
COMMENT 'Who has led the detection, and in which order.';

CREATE TABLE IF NOT EXISTS ticks
(
    `tick` UInt64 COMMENT 'number of the tick, counted from 1',
    `epoch` UInt64 COMMENT 'leadership under which it was claimed',
    `from` DateTime64(3, 'UTC') COMMENT 'end of the event time evaluated before',
    `to` DateTime64(3, 'UTC') COMMENT 'end of the event time that the tick evaluated; its steps are of 10 seconds',
    `clock` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop at the claim; clock - to is how far behind the detection was',
    `marks` Array(Tuple(stream String, topic String, incarnation UInt32, partition Int32, end_offset Int64, watermark DateTime64(3, 'UTC'))) COMMENT 'how far each topic partition had come: rows below these offsets belong to this tick or an earlier one',
    `partial` Array(String) COMMENT 'streams that were not waited for any longer; their silence says nothing',
    `commands` String COMMENT 'commands of people that the tick applied, JSON' CODEC(ZSTD(3)),
    `rules` String COMMENT 'revision of the rule files',
    `catalogue` String COMMENT 'revision of the catalogue',
    `binary` String COMMENT 'version of the program',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'wall clock of the claim'
)
{{engine "MergeTree"}}
ORDER BY tick
TTL toDateTime(inserted_at) + INTERVAL 400 DAY
{{settings 100000}}
COMMENT 'One row for each step of the detector: what it was allowed to see. Kept for 400 days.';

CREATE TABLE IF NOT EXISTS ticks_done
(
    `tick` UInt64 COMMENT 'number of the tick',
    `to` DateTime64(3, 'UTC') COMMENT 'end of the event time that it evaluated',
    `clock` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop when it was claimed',
    `transitions` UInt32 COMMENT 'rows it added to findings',
    `events` UInt32 COMMENT 'rows it added to incident_events',
    `warnings` UInt32 COMMENT 'rows it added to warnings',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'wall clock when all of it was stored'
)
{{engine "MergeTree"}}
ORDER BY tick
TTL toDateTime(inserted_at) + INTERVAL 400 DAY
{{settings 100000}}
COMMENT 'Ticks whose conclusions are stored completely. Kept for 400 days.';

CREATE TABLE IF NOT EXISTS tick_cells
(
{{template "tick"}}
    `bucket` DateTime64(3, 'UTC') COMMENT 'start of the 10 seconds of event time that the row counts',
    `key` UInt64 COMMENT 'what is counted: a path with its attribute values, see table keys',
    `successes` UInt64 COMMENT 'requests that succeeded',
    `failures` UInt64 COMMENT 'requests that failed by the fault of the service',
    `rejected` UInt64 COMMENT 'requests refused by the fault of the caller, most 4xx',
    `throttled` UInt64 COMMENT 'requests refused to protect the service, such as 429',
    `retries` UInt64 COMMENT 'requests of any outcome that were not a first try',
    `latency` Array(UInt64) COMMENT 'requests by duration: element i counts those of at most 1 ms * 2^((i-1)/2), element 32 those above; missing elements at the end are 0',
    `accounts` Array(UInt64) COMMENT 'the up to 64 smallest hashes of the accounts behind the failures, ascending; fewer than 64 elements are an exact count',
    `samples` Array(Tuple(hash UInt64, trace_id String, error String, account String)) COMMENT 'up to 3 failed requests as examples',
    `estimated` UInt8 COMMENT '1 if counts were scaled up from sampled spans',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it',
    INDEX by_bucket bucket TYPE minmax GRANULARITY 1
)
{{template "tick_storage"}}
ORDER BY (tick, bucket, key)
{{settings 10000}}
COMMENT 'Requests as the detector saw them. Rows of the same bucket and key add up: late ones come with a later tick. Kept for 35 days.';

CREATE TABLE IF NOT EXISTS tick_gauges
(
{{template "tick"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time of the measurement',
    `resource` String COMMENT 'what was measured, such as mysql/collab/primary',
    `metric` LowCardinality(String) COMMENT 'which of its numbers, such as connections',
    `value` Float64 COMMENT 'the measurement',
    `limit` Float64 COMMENT 'the most the value can be, 0 where no limit is known',
    `unit` LowCardinality(String) COMMENT 'unit of value and limit',
    `attributes` Map(LowCardinality(String), String) COMMENT 'further dimensions of the measurement',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it',
    INDEX by_time time TYPE minmax GRANULARITY 1
)
{{template "tick_storage"}}
ORDER BY (tick, resource, metric, time)
{{settings 10000}}
COMMENT 'Measurements of resources as the detector saw them. Kept for 35 days.';

CREATE TABLE IF NOT EXISTS tick_tickets
(
{{template "tick"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time: when the customer wrote',
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
    `status` LowCardinality(String) COMMENT 'status of the ticket when it was first seen',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it',
    INDEX by_id id TYPE bloom_filter GRANULARITY 1
)
{{template "tick_storage"}}
ORDER BY (tick, time, id)
{{settings 10000}}
COMMENT 'Support tickets at the first sight of their id: one row a ticket. Kept for 35 days.';

CREATE TABLE IF NOT EXISTS tick_changes
(
{{template "tick"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time of the phase',
    `id` String COMMENT 'id of the change; rows of one id belong together',
    `kind` LowCardinality(String) COMMENT 'deploy, rollback, job, failover, flag, config, migration or maintenance',
    `phase` LowCardinality(String) COMMENT 'started, finished or aborted',
    `target` String COMMENT 'service or resource that is changed, empty if unknown',
    `title` String COMMENT 'what was done, in words',
    `actor` String COMMENT 'who did it',
    `url` String COMMENT 'where it can be looked at',
    `dose` Float64 COMMENT 'how much of the target it touches, from 0 to 1; 0 is unknown',
    `attributes` Map(LowCardinality(String), String) COMMENT 'further dimensions, such as region or version',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it',
    INDEX by_id id TYPE bloom_filter GRANULARITY 1
)
{{template "tick_storage"}}
ORDER BY (tick, time, id, phase)
{{settings 10000}}
COMMENT 'Changes, one row for each phase of each. Kept for 35 days.';

CREATE TABLE IF NOT EXISTS tick_alerts
(
{{template "tick"}}
    `time` DateTime64(3, 'UTC') COMMENT 'event time: when the alert started, or ended if it is resolved',
    `fingerprint` String COMMENT 'identity of the alert in the other system',
    `status` LowCardinality(String) COMMENT 'firing or resolved',
    `labels` Map(LowCardinality(String), String) COMMENT 'labels of the alert',
    `annotations` Map(LowCardinality(String), String) COMMENT 'annotations of the alert',
    `starts_at` DateTime64(3, 'UTC') COMMENT 'when the alert began, 1970-01-01 if unknown',
    `ends_at` DateTime64(3, 'UTC') COMMENT 'when the alert ended, 1970-01-01 if it did not',
    `generator_url` String COMMENT 'page of the rule that fired',
    `receiver` LowCardinality(String) COMMENT 'receiver that the other system sent it to',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it'
)
{{template "tick_storage"}}
ORDER BY (tick, time, fingerprint)
{{settings 10000}}
COMMENT 'Alerts of other systems as the detector saw them. Kept for 35 days.';
