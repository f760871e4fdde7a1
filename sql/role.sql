-- role.sql - the role that walrelay connects as, with the least rights it needs.
--
-- Who runs it: a superuser, connected to the database of the outbox table, once.
--   psql -d shop -v role=walrelay -f role.sql      then, in psql: \password walrelay
-- Variables: role (walrelay).
-- Repeatable: an existing role keeps its password and what else it has.
--
-- REPLICATION lets it stream from a slot and make one.  It needs no right on any table
-- but its own (state.sql): rows come out of the WAL.  pg_monitor lets `walrelay check` and `setup` see
-- the setting output_plugin_libraries (pg_read_all_settings) and which transactions
-- the making of a slot waits for (pg_read_all_stats); the relay runs without it, and
-- whoever may not grant it leaves it out.
--
-- pg_hba.conf needs a line for this role and this database; one for the database
-- "replication" does not serve logical replication:
--   host  shop  walrelay  10.0.0.0/8  scram-sha-256

\if :{?role}
\else
\set role walrelay
\endif

SELECT format('CREATE ROLE %I', :'role')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role')
\gexec

SELECT format('ALTER ROLE %I LOGIN REPLICATION', rolname)
FROM pg_roles
WHERE rolname = :'role' AND NOT (rolcanlogin AND (rolreplication OR rolsuper))
\gexec

SELECT format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), :'role')
WHERE NOT has_database_privilege(:'role', current_database(), 'CONNECT')
\gexec

SELECT format('GRANT pg_monitor TO %I', :'role')
WHERE NOT pg_has_role(:'role', 'pg_monitor', 'member')
  AND pg_has_role('pg_monitor', 'member with admin option')
\gexec
