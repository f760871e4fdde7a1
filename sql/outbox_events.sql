-- outbox_events.sql - the outbox table that walrelay's defaults are made for.
--
-- Who runs it: the owner of the application's tables.
--   psql -d shop -v schema=public -v table=outbox_events -f outbox_events.sql
-- Variables: schema (public), table (outbox_events).
-- Repeatable: an existing table is left alone.
--
-- The application inserts an event in the transaction that makes it true:
--   INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
--   VALUES ('order', '42', 'OrderPlaced', '{"total": 12.5}');
-- By default the event goes to topic outbox.event.order with key 42.  A NULL payload
-- is a tombstone.  attempts and processed_at, and the index, are for those who poll
-- the table; the relay reads the WAL and leaves them alone.  Rows may be deleted at any
-- time, even in the transaction that inserted them.

\if :{?schema}
\else
\set schema public
\endif
\if :{?table}
\else
\set table outbox_events
\endif
\set index :table _unprocessed

CREATE TABLE IF NOT EXISTS :"schema".:"table" (
    id             uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    aggregate_type text        NOT NULL,
    aggregate_id   text,
    event_type     text,
    payload        jsonb,
    attempts       int         NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL DEFAULT now(),
    processed_at   timestamptz
);

CREATE INDEX IF NOT EXISTS :"index" ON :"schema".:"table" (created_at)
WHERE processed_at IS NULL;
