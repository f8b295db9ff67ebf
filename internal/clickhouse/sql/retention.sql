-- Tables of tick inputs that keep them for another time than they should.
SELECT name
FROM system.tables
WHERE database = currentDatabase() AND name IN ('tick_cells', 'tick_gauges', 'tick_tickets', 'tick_changes', 'tick_alerts', 'checkpoints')
    AND position(engine_full, {interval:String}) = 0
ORDER BY name
