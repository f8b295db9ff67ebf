-- Only of a tick that is done: an unfinished one is evaluated again, from the state before it.
SELECT tick, state FROM checkpoints WHERE tick <= {tick:UInt64} ORDER BY tick DESC LIMIT 1
