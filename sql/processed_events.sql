-- processed_events.sql - a consumer's memory of the events it has dealt with.
--
-- Who runs it: the owner of the consumer's tables, in the consumer's own database.
--   psql -d billing -v schema=public -v table=processed_events -f processed_events.sql
-- Variables: schema (public), table (processed_events).
-- Repeatable: an existing table is left alone.
--
-- walrelay delivers at least once: after a crash the same event, with the same id
-- header, may come again.  A consumer that records the id in the transaction of its
-- own work does the work once:
--
--   BEGIN;
--   INSERT INTO processed_events (consumer, event_id) VALUES ('billing', $1)
--   ON CONFLICT DO NOTHING;
--   -- no row inserted: the work was done before, skip it
--   ... the work ...
--   COMMIT;
--   -- only now commit the offset in Kafka
--
-- The INSERT waits for another session that is dealing with the same event.  Forget
-- what can no longer come again, for instance
--   DELETE FROM processed_events WHERE processed_at < now() - interval '30 days';
-- but keep it longer than the topic's retention and than any outage of the relay.

\if :{?schema}
\else
\set schema public
\endif
\if :{?table}
\else
\set table processed_events
\endif
\set index :table _age

CREATE TABLE IF NOT EXISTS :"schema".:"table" (
    consumer     text        NOT NULL,
    event_id     text        NOT NULL,
    processed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, event_id)
);

CREATE INDEX IF NOT EXISTS :"index" ON :"schema".:"table" (processed_at);
