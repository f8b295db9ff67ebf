INSERT INTO schema_lock (term, owner, held, until)
SELECT {term:UInt64} AS term, {owner:String} AS owner, {held:UInt8} AS held, now64(3) + INTERVAL {seconds:UInt32} SECOND AS until
ORDER BY ALL
