CREATE TABLE IF NOT EXISTS schema_lock
(
    `term` UInt64 COMMENT 'number of the turn, counted from 1',
    `owner` String COMMENT 'random text by which a process knows its own turn',
    `held` UInt8 COMMENT '1 if the turn was taken, 0 if it was given back',
    `until` DateTime64(3, 'UTC') COMMENT 'wall clock of the database at which the turn ends by itself'
)
ENGINE = MergeTree
ORDER BY (term, held)
SETTINGS non_replicated_deduplication_window = 10000
COMMENT 'Whose turn it is to change the schema: of several that insert the same turn one row stays.';

CREATE TABLE IF NOT EXISTS schema_migrations
(
    `version` UInt32 COMMENT 'number of the migration file',
    `name` String COMMENT 'name of the migration file',
    `checksum` String COMMENT 'SHA-256 of the file as it was applied',
    `applied_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'wall clock when all its statements were done'
)
ENGINE = MergeTree
ORDER BY version
SETTINGS non_replicated_deduplication_window = 10000
COMMENT 'Migration files that were applied to this database.';
