SELECT (SELECT max(tick) FROM ticks), (SELECT max(tick) FROM ticks_done)
