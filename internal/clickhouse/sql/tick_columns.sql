{{define "tick_columns"}}tick, epoch, toUnixTimestamp64Milli(`from`), toUnixTimestamp64Milli(`to`), toUnixTimestamp64Milli(clock),
    arrayMap(m -> m.1, marks), arrayMap(m -> m.2, marks), arrayMap(m -> m.3, marks), arrayMap(m -> m.4, marks), arrayMap(m -> m.5, marks),
    arrayMap(m -> toUnixTimestamp64Milli(m.6), marks), partial, commands, answers, rules, catalogue, binary{{end}}
