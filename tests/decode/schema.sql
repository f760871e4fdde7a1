-- Tables with every kind of column that wal2json writes in its own way.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;

CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'ha"ppy', 'very\happy');
CREATE TYPE point3 AS (x int, "label ""q""" text, z numeric);
CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
CREATE DOMAIN blob AS bytea;
CREATE DOMAIN amount AS numeric(12, 2);

CREATE TABLE outbox_events (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    aggregate_type text NOT NULL,
    aggregate_id text NOT NULL,
    event_type text NOT NULL,
    payload jsonb,
    attempts int NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    processed_at timestamptz
);

CREATE TABLE numbers (
    a smallint, b int, c bigint, d numeric, e numeric(20, 6), f real, g double precision,
    h oid, i money, j boolean, k "char", l int4range, m amount
);
CREATE TABLE texts (
    a text, b varchar(30), c char(8), d citext, e name, f json, g jsonb, h xml,
    i email, j bytea, k blob, l bit(4), m varbit, n inet, o macaddr, p tsvector,
    q hstore, r mood, s point3, t pg_lsn, u uuid
);
CREATE TABLE times (
    a date, b time(3), c timetz, d timestamp, e timestamptz, f interval, g tstzrange
);
CREATE TABLE arrays (
    a int[], b text[], c numeric[][], d mood[], e point3[], f bytea[], g jsonb[],
    h boolean[]
);
CREATE TABLE generated (a int, b int GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE no_columns ();
CREATE TABLE no_key (a int, b text);
CREATE TABLE full_identity (a int, b text);
ALTER TABLE full_identity REPLICA IDENTITY FULL;

-- Names that SQL, JSON or both must quote.
CREATE SCHEMA "Sales Dept";
CREATE TABLE "Sales Dept"."we""ird\table.v1" ("col""umn\" int PRIMARY KEY, "Größe 😀" text);
ALTER TABLE "Sales Dept"."we""ird\table.v1" RENAME TO "we""ird\table.v2";

-- Type names that wal2json writes without escaping them.
CREATE TYPE "Weird" AS ENUM ('a');
CREATE TYPE "we""ird" AS ENUM ('a"', 'b');
CREATE TYPE "back\slash" AS ENUM ('a');
CREATE TYPE "back\" AS ENUM ('a');
CREATE TYPE "comma"",""value"":1" AS ENUM ('a');
CREATE TYPE "}" AS ENUM ('a');
CREATE TYPE "Sales Dept"."My Type" AS ENUM ('a');
CREATE TYPE "Sales Dept".plain AS ENUM ('a');
CREATE DOMAIN "Domain X" AS varchar(10);
CREATE TABLE quoted_types (
    a "Weird", b "we""ird", c "back\slash", d "back\", e "comma"",""value"":1", f "}",
    g "Sales Dept"."My Type", h "Sales Dept".plain, i "Domain X", j text
);
CREATE TABLE quoted_arrays (
    a "Weird"[], b "we""ird"[], c "back\slash"[], d "}"[], e "Sales Dept".plain[]
);
