-- dead_letters.sql - the events that Kafka did not take, and those that wait behind them.
--
-- Who runs it: the owner of the application's tables, in the database of the outbox
-- tables, once the relay's role exists.
--   psql -d shop -v role=walrelay -f dead_letters.sql
-- Variables: schema (public), role (walrelay).
-- Repeatable: an existing table is left alone.
--
-- One row for each event.  The relay writes it before it confirms the event to its slot
-- and works on it until it is resolved:
--
--   waiting    refused; tried again at retry_after
--   held       never tried: an earlier event of the same topic and key is unresolved
--   dead       refused too often; stays until somebody acts
--   resolved   in Kafka after all
--   discarded  given up by somebody, see note
--
-- What people may do, here or with walrelay dead-letters; the relay notices at once:
--   UPDATE walrelay_dead_letters SET attempts = 0, retry_after = NULL WHERE id = 42;
--   UPDATE walrelay_dead_letters SET state = 'discarded', note = 'why' WHERE id = 42;
--
-- An event is known again, when PostgreSQL sends it once more, by the place of its row in
-- the WAL: row_lsn, row_number among the rows of that record (a COPY writes many at
-- once), and the time of its commit.  begin_lsn and commit_lsn are the first record and the
-- end of its transaction; the end is NULL while that is being read.  A row must stay while the slot may send its event again:
--   DELETE FROM walrelay_dead_letters d USING pg_replication_slots s
--   WHERE s.slot_name = d.slot AND d.commit_lsn <= s.confirmed_flush_lsn
--     AND d.state IN ('resolved', 'discarded') AND d.last_failed_at < now() - interval '90 days';
--
-- The table is not in the stream, and its rows are the relay's alone to insert.

\if :{?schema}
\else
\set schema public
\endif
\if :{?role}
\else
\set role walrelay
\endif

CREATE TABLE IF NOT EXISTS :"schema".walrelay_dead_letters (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in the order of the stream
    slot            text        NOT NULL,
    row_lsn         pg_lsn      NOT NULL,
    row_number      int         NOT NULL,
    committed_at    timestamptz NOT NULL,
    begin_lsn       pg_lsn      NOT NULL,
    commit_lsn      pg_lsn,
    outbox_table    text        NOT NULL,
    event_id        text,
    event_type      text,
    aggregate_type  text,
    aggregate_id    text,
    topic           text,        -- NULL: none could be made of the row
    key             bytea,
    payload         bytea,       -- the bytes of the record's value; NULL: a tombstone
    header_names    text[]      NOT NULL DEFAULT '{}',
    header_values   bytea[]     NOT NULL DEFAULT '{}',
    partition       int,         -- of the row's own choice
    record_time     timestamptz, -- of the row's own choice, with the text it came from
    given_time      text,        -- NULL: the time of the commit
    replaced        boolean     NOT NULL DEFAULT false,
    replacement     bytea,       -- if replaced, what is sent instead of payload
    reason          text        NOT NULL,
    error_code      text,
    error           text,
    attempts        int         NOT NULL DEFAULT 0,
    first_failed_at timestamptz NOT NULL DEFAULT now(),
    last_failed_at  timestamptz NOT NULL DEFAULT now(),
    retry_after     timestamptz, -- NULL: at once
    state           text        NOT NULL CHECK (state IN ('waiting', 'held', 'dead', 'resolved', 'discarded')),
    note            text,
    CHECK (cardinality(header_names) = cardinality(header_values)),
    UNIQUE (slot, row_lsn, row_number, committed_at)
);

-- A key may be longer than an index takes.
CREATE INDEX IF NOT EXISTS walrelay_dead_letters_key
ON :"schema".walrelay_dead_letters (slot, topic, md5(key), id) WHERE state IN ('waiting', 'held', 'dead');

CREATE INDEX IF NOT EXISTS walrelay_dead_letters_held
ON :"schema".walrelay_dead_letters (slot, topic, md5(key)) WHERE state = 'held';

CREATE INDEX IF NOT EXISTS walrelay_dead_letters_due
ON :"schema".walrelay_dead_letters (slot, retry_after) WHERE state IN ('waiting', 'dead');

-- What may come again is looked for whenever a stream begins.
CREATE INDEX IF NOT EXISTS walrelay_dead_letters_end
ON :"schema".walrelay_dead_letters (slot, commit_lsn);

-- An existing table or view of this name is somebody else's and stays.
SELECT format('CREATE VIEW %1$I.outbox_dead_letters AS SELECT id, outbox_table, event_id, event_type,'
              ' aggregate_type, aggregate_id, topic, key, payload, state, reason, error_code, error, attempts,'
              ' first_failed_at, last_failed_at, retry_after, note FROM %1$I.walrelay_dead_letters', :'schema')
WHERE to_regclass(format('%I.outbox_dead_letters', :'schema')) IS NULL
\gexec

-- Wakes the relay, whoever changed a row.
CREATE OR REPLACE FUNCTION :"schema".walrelay_dead_letters_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS
$$ BEGIN PERFORM pg_notify('walrelay_dead_letters', ''); RETURN NULL; END $$;

DROP TRIGGER IF EXISTS walrelay_dead_letters_changed ON :"schema".walrelay_dead_letters;

CREATE TRIGGER walrelay_dead_letters_changed
AFTER UPDATE OF state, attempts, retry_after ON :"schema".walrelay_dead_letters
FOR EACH STATEMENT EXECUTE FUNCTION :"schema".walrelay_dead_letters_changed();

SELECT format('GRANT USAGE ON SCHEMA %I TO %I', :'schema', :'role')
WHERE NOT has_schema_privilege(:'role', :'schema', 'USAGE')
\gexec

SELECT format('GRANT SELECT, INSERT, UPDATE ON %I.walrelay_dead_letters TO %I', :'schema', :'role')
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS needed
WHERE NOT has_table_privilege(:'role', format('%I.walrelay_dead_letters', :'schema'), needed)
GROUP BY 1
\gexec
