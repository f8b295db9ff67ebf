-- How many rows ticks were given, as far as that was noted.
SELECT tick, assumeNotNull(inputs)
FROM ticks_done
WHERE tick BETWEEN {from:UInt64} AND {to:UInt64} AND inputs IS NOT NULL
ORDER BY tick
LIMIT 1 BY tick
