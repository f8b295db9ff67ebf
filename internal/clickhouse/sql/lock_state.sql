-- The newest turn: whose it is, and whether somebody still has it.
SELECT term, argMax(owner, held), min(held) = 1 AND max(until) > now64(3)
FROM schema_lock
GROUP BY term
ORDER BY term DESC
LIMIT 1
