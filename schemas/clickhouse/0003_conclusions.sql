-- What the detector concluded. Each table's rows of one tick are one insert under the tick's token; a tick counts once it is in
-- ticks_done, which is written last.

{{define "conclusion"}}
    `tick` UInt64 COMMENT 'number of the tick that concluded it',
    `position` UInt32 COMMENT 'place among the rows of the tick',
{{end}}

{{define "conclusion_storage"}}
{{engine "MergeTree"}}
PARTITION BY intDiv(tick, 1000000)
{{end}}

CREATE TABLE IF NOT EXISTS findings
(
{{template "conclusion"}}
    `at` DateTime64(3, 'UTC') COMMENT 'event time of the change of state',
    `rule` LowCardinality(String) COMMENT 'name of the rule',
    `kind` LowCardinality(String) COMMENT 'kind of the rule, such as failure_rate or saturation',
    `previous_state` LowCardinality(String) COMMENT 'state before: inactive, pending, firing or unknown',
    `state` LowCardinality(String) COMMENT 'state after: inactive, pending, firing or unknown',
    `service` LowCardinality(String) COMMENT 'service judged, empty if the rule judges something else',
    `operation` String COMMENT 'operation judged, empty if the rule judges something else',
    `access` LowCardinality(String) COMMENT 'read or write, empty if what is judged is no path',
    `resource` String COMMENT 'resource judged, empty if the rule judges something else',
    `metric` LowCardinality(String) COMMENT 'metric of the resource, empty if the rule judges something else',
    `area` LowCardinality(String) COMMENT 'product area judged, empty if the rule judges something else',
    `attributes` Map(LowCardinality(String), String) COMMENT 'attribute values that narrow the path to a slice',
    `active_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'since when it was abnormal, NULL if it is not',
    `fired_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when it began to fire, NULL if it did not',
    `ended_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when it stopped firing, NULL if it did not',
    `value` Float64 COMMENT 'what the rule measured: a share for rates, value / limit for saturation, accounts for tickets',
    `requests` UInt64 COMMENT 'requests judged',
    `failures` UInt64 COMMENT 'failures among them',
    `accounts_at_least` UInt64 COMMENT 'distinct accounts affected, as far as they are known',
    `accounts` Array(UInt64) COMMENT 'the up to 64 smallest hashes of those accounts, ascending',
    `labels` Map(LowCardinality(String), String) COMMENT 'labels of the rule',
    `annotations` Map(LowCardinality(String), String) COMMENT 'annotations of the rule, filled in',
    `explain` String COMMENT 'one sentence: the counts and what they were held against',
    `partial` UInt8 COMMENT '1 if part of the data was missing',
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert',
    INDEX by_at at TYPE minmax GRANULARITY 1
)
{{template "conclusion_storage"}}
ORDER BY (tick, position)
TTL inserted_at + INTERVAL 400 DAY
{{settings 10000}}
COMMENT 'Changes of state of rules: one row each time a rule changed its mind about a key. Kept for 400 days.';

CREATE TABLE IF NOT EXISTS incident_events
(
{{template "conclusion"}}
    `incident` String COMMENT 'id of the incident',
    `sequence` UInt64 COMMENT 'number of the event within its incident, counted from 1',
    `at` DateTime64(3, 'UTC') COMMENT 'event time of what happened',
    `clock` DateTime64(3, 'UTC') COMMENT 'clock of the ingest loop when the tick was claimed; clock - at is how late this was known',
    `type` LowCardinality(String) COMMENT 'what happened: suspected, declared, acknowledged, severity_changed, mitigated, resolved and others',
    `by` String COMMENT 'person who did it, empty if no person did',
    `reason` String COMMENT 'what happened and why, in one sentence',
    `state` LowCardinality(String) COMMENT 'state of the incident after it: suspected, declared, acknowledged, mitigated, resolved, merged or dismissed',
    `severity` LowCardinality(String) COMMENT 'severity after it: minor, major or critical',
    `title` String COMMENT 'title of the incident after it',
    `page` UInt8 COMMENT '1 if the incident might wake somebody',
    `muted` String COMMENT 'why it would not although it might, empty if nothing mutes it',
    `areas` Array(String) COMMENT 'product areas affected so far',
    `services` Array(String) COMMENT 'services affected so far',
    `resources` Array(String) COMMENT 'resources involved so far',
    `started_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when the trouble began, as far as is known',
    `first_finding_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'event time of the first finding',
    `declared_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when it was declared, NULL if it was not',
    `acknowledged_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when a person took it, NULL if nobody did',
    `acknowledged_by` String COMMENT 'who took it',
    `mitigated_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when customers were served again, NULL if they are not',
    `resolved_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when it was over, NULL if it is not',
    `merged_into` String COMMENT 'incident in which it lives on, empty if it was not merged',
    `impact_kind` LowCardinality(String) COMMENT 'what customers noticed most: failures, latency, absence, tickets, saturation or backlog',
    `requests` UInt64 COMMENT 'requests on the affected paths while they were affected',
    `failures` UInt64 COMMENT 'failures among them',
    `peak_share` Float64 COMMENT 'highest failure rate, from 0 to 1',
    `peak_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when the failure rate was highest',
    `accounts_at_least` UInt64 COMMENT 'distinct customer accounts affected, as far as they are known',
    `tickets` UInt64 COMMENT 'support tickets attached',
    `suspect_kind` LowCardinality(String) COMMENT 'kind of the first suspect: service, resource, change, attributes or unknown; empty if none was looked for',
    `suspect` String COMMENT 'id of the first suspect',
    `suspect_score` Float64 COMMENT 'how probable it is, from 0 to 1',
    `labels` Map(LowCardinality(String), String) COMMENT 'labels that routes match on',
    `after` String COMMENT 'the whole incident after the event, JSON' CODEC(ZSTD(3)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'wall clock of the insert',
    INDEX by_incident incident TYPE bloom_filter GRANULARITY 1
)
{{template "conclusion_storage"}}
ORDER BY (tick, position)
{{settings 10000}}
COMMENT 'The incident log: what happened to each incident, with the incident as it was afterwards. Nothing in it is ever changed or deleted.';

CREATE TABLE IF NOT EXISTS warnings
(
{{template "conclusion"}}
    `at` DateTime64(3, 'UTC') COMMENT 'event time of the warning',
    `resource` String COMMENT 'resource that will run out',
    `metric` LowCardinality(String) COMMENT 'which of its numbers',
    `value` Float64 COMMENT 'its value then',
    `limit` Float64 COMMENT 'the most it can be',
    `exhausted_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'when it will be used up if it goes on like this, NULL where the level alone warns',
    `rule` LowCardinality(String) COMMENT 'rule that warned',
    `guard` String COMMENT 'guard that acted on it, empty if none',
    `incident` String COMMENT 'incident that it belongs to, empty if none',
    `suspects` String COMMENT 'probable causes, JSON' CODEC(ZSTD(3)),
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert'
)
{{template "conclusion_storage"}}
ORDER BY (tick, position)
TTL inserted_at + INTERVAL 400 DAY
{{settings 10000}}
COMMENT 'Warnings that a resource will run out before anything has failed. Kept for 400 days.';

CREATE TABLE IF NOT EXISTS checkpoints
(
    `tick` UInt64 COMMENT 'tick after which the state was saved',
    `tick_to` DateTime64(3, 'UTC') COMMENT 'event time up to which it had evaluated',
    `size` UInt64 COMMENT 'bytes of the state',
    `state` String COMMENT 'state of the detector, for the program only' CODEC(ZSTD(3)),
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert; rows are deleted by it'
)
{{engine "MergeTree"}}
PARTITION BY intDiv(tick, 10000)
ORDER BY tick
TTL inserted_at + INTERVAL 35 DAY
{{settings 10000}}
COMMENT 'Saved states of the detector, from which it starts again. Kept for 35 days.';
