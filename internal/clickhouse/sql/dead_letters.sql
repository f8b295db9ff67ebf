SELECT toString(stream), toString(topic), incarnation, partition, offset, toUnixTimestamp64Milli(time), toString(reason), detail, payload, size
FROM dead_letters
ORDER BY inserted_at DESC, topic, partition, offset DESC, position DESC
LIMIT {limit:UInt64}
