SELECT id, toString(service), operation, toString(access), attributes FROM keys WHERE id IN {ids:Array(UInt64)}
