SELECT groupArray(name) FROM system.settings WHERE name IN {names:Array(String)}
