-- The last tick that ended a window before the newest one.
SELECT max(tick) FROM ticks WHERE `to` <= (SELECT max(`to`) FROM ticks) - toIntervalMillisecond({window:Int64})
