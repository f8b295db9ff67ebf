SELECT version, name, checksum FROM schema_migrations ORDER BY version, applied_at LIMIT 1 BY version
