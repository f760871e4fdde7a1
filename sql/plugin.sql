-- plugin.sql - lets the server load wal2json as an output plugin.
--
-- Who runs it: a superuser, once per server (and on standbys, before a failover).
--   psql -f plugin.sql
-- Repeatable: a server that allows wal2json already, or that does not know the
-- setting, is left alone.
--
-- From 15.19, 18.6 and the same minor releases of the others on, a server refuses every
-- output plugin that output_plugin_libraries does not name, also for slots that exist.
-- The value is a list without quotes: 'a, b' in one pair of quotes would be one name.

SELECT format('ALTER SYSTEM SET output_plugin_libraries = %s',
              concat_ws(', ', nullif(setting, ''), 'wal2json')),
       -- the server needs a moment to read its files again
       'SELECT pg_reload_conf(), pg_sleep(1)'
FROM pg_settings
WHERE name = 'output_plugin_libraries'
  AND 'wal2json' <> ALL (regexp_split_to_array(setting, '\s*,\s*'))
\gexec
