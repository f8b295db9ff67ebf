-- How much each tick was given, so that a replay knows when its inputs are no longer complete.

ALTER TABLE ticks_done
    ADD COLUMN IF NOT EXISTS `inputs` Nullable(UInt64) COMMENT 'rows that it was given, cells of the same key and bucket summed; NULL for ticks from before this was noted' AFTER `warnings`;
