SELECT tick, toUnixTimestamp64Milli(`to`), toUnixTimestamp64Milli(clock) FROM ticks_done ORDER BY tick DESC LIMIT 1
