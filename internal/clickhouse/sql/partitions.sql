-- Every partition there is, with its newest heartbeat if it has one.
SELECT p.stream, p.topic, p.incarnation, p.partition, h.end_offset, toUnixTimestamp64Milli(h.watermark), toUnixTimestamp64Milli(h.clock)
FROM (SELECT stream, topic, incarnation, partition FROM topic_partitions FINAL) AS p
LEFT JOIN (SELECT stream, topic, incarnation, partition, end_offset, watermark, clock FROM heartbeats FINAL) AS h
    ON p.stream = h.stream AND p.topic = h.topic AND p.incarnation = h.incarnation AND p.partition = h.partition
ORDER BY p.stream, p.topic, p.incarnation, p.partition
