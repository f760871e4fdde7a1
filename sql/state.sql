-- state.sql - the table in which walrelay writes down how far it has confirmed.
--
-- Who runs it: a superuser, or an owner of schema public, connected to the database of
-- the outbox table.
--   psql -d shop -v role=walrelay -f state.sql
-- Variables: role (walrelay).
-- Repeatable: what exists is left alone.
--
-- One row for each slot.  The position is the slot's; this only helps to notice that a
-- slot was moved, was made again, or is one of another server.  walrelay runs without it.

\if :{?role}
\else
\set role walrelay
\endif

SELECT 'CREATE TABLE public.walrelay_state (
  slot          text PRIMARY KEY,
  system_id     text NOT NULL,
  timeline      bigint NOT NULL,
  confirmed_lsn pg_lsn NOT NULL,
  written_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10)'
WHERE to_regclass('public.walrelay_state') IS NULL
\gexec

SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON public.walrelay_state TO %I', :'role')
WHERE NOT (has_table_privilege(:'role', 'public.walrelay_state', 'SELECT')
  AND has_table_privilege(:'role', 'public.walrelay_state', 'INSERT')
  AND has_table_privilege(:'role', 'public.walrelay_state', 'UPDATE')
  AND has_table_privilege(:'role', 'public.walrelay_state', 'DELETE'))
\gexec
