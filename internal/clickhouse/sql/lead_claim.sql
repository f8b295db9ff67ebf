SELECT (SELECT max(epoch) FROM epochs), claim FROM epochs WHERE epoch = {epoch:UInt64} LIMIT 1
