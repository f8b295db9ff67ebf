-- What the queries of sql rules returned. It is part of the tick's record, because it is the claim that decides which of two leaders'
-- answers count.

ALTER TABLE ticks
    ADD COLUMN IF NOT EXISTS `answers` String COMMENT 'what queries of sql rules returned until the claim, JSON; they count from the first step of the tick on' CODEC(ZSTD(3)) AFTER `commands`;
