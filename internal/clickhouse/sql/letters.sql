-- Offsets of one partition that have dead letters.
SELECT DISTINCT offset
FROM dead_letters
WHERE stream = {stream:String} AND topic = {topic:String} AND incarnation = {incarnation:UInt32} AND partition = {partition:Int32}
    AND offset >= {start:Int64} AND offset < {end:Int64}
ORDER BY offset
