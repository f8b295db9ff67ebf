-- The texts behind the revisions that ticks name, so that a tick can be evaluated again with what was in force then.

CREATE TABLE IF NOT EXISTS sources
(
    `kind` LowCardinality(String) COMMENT 'what it is: rules or catalogue',
    `revision` String COMMENT 'revision that ticks name it by',
    `names` Array(String) COMMENT 'names of the files',
    `texts` Array(String) COMMENT 'their contents, in the same order' CODEC(ZSTD(3)),
    `inserted_at` DateTime('UTC') MATERIALIZED now() COMMENT 'wall clock of the insert'
)
{{engine "MergeTree"}}
ORDER BY (kind, revision)
{{settings 10000}}
COMMENT 'Rule files and catalogues that were ever in force, by their revision. Never deleted.';
