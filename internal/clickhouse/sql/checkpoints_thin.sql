DELETE FROM checkpoints WHERE tick <= {before:UInt64} AND tick % {every:UInt64} != 0
