-- slot.sql - the replication slot that walrelay streams from.
--
-- Who runs it: a role with REPLICATION (the relay's own will do), connected to the
-- database of the outbox table, before the first event is written.
--   psql -d shop -v slot=walrelay -f slot.sql
-- Variables: slot (walrelay).
-- Repeatable: an existing slot is left alone.
--
-- Events committed before the slot is made are not in it.  From then on the server
-- keeps all WAL that the relay has not confirmed: drop a slot that is no longer used
-- (SELECT pg_drop_replication_slot('walrelay')), and bound it with
-- max_slot_wal_keep_size.
--
-- Making a slot waits for every transaction that is writing at that moment, in any
-- database of the server, prepared ones too.  The wait for each is bounded here, and
-- a session that goes away stops waiting (from 14 on: add
-- SET client_connection_check_interval = '1s'); neither leaves half a slot behind.
-- To see whom it waits for:
--   SELECT pid, usename, state, xact_start FROM pg_stat_activity WHERE backend_xid IS NOT NULL;
--   SELECT gid, prepared FROM pg_prepared_xacts;

\if :{?slot}
\else
\set slot walrelay
\endif

SET lock_timeout = '60s';

-- What walrelay wrote down of an earlier slot of this name does not hold for a new one.
SELECT format('DELETE FROM public.walrelay_state WHERE slot = %L', :'slot')
WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = :'slot')
  AND has_table_privilege(to_regclass('public.walrelay_state'), 'DELETE')
\gexec

SELECT pg_create_logical_replication_slot(:'slot', 'wal2json')
WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = :'slot');
