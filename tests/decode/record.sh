#!/bin/sh
# Records the messages of this directory anew: record.sh
#
# psql must reach a throw-away server as a superuser (PGHOST and so on), with
# wal_level = logical and wal2json 2.5 allowed as output plugin.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
db=walrelay_record
run="psql -X -q -A -t -v ON_ERROR_STOP=1 -d $db"
# What the relay pins for its connection.
PGOPTIONS='-c bytea_output=hex -c datestyle=ISO -c intervalstyle=postgres'
PGOPTIONS="$PGOPTIONS -c timezone=UTC -c extra_float_digits=3"
export PGOPTIONS PGCLIENTENCODING=UTF8

slot() { # NAME OPTIONS...: what the slot NAME has, with these options, to NAME.jsonl
    name=$1
    shift
    $run -c "SELECT data FROM pg_logical_slot_get_changes('$name', NULL, NULL,
        'format-version', '2', 'include-timestamp', '1', $*)" >"$here/$name.jsonl"
    $run -c "SELECT pg_drop_replication_slot('$name')" >/dev/null
}

psql -X -q -d postgres -c "CREATE DATABASE $db ENCODING 'UTF8' TEMPLATE template0"
$run -f "$here/schema.sql"
for name in plain types everything; do
    $run -c "SELECT pg_create_logical_replication_slot('$name', 'wal2json')" >/dev/null
done
$run -f "$here/rows.sql" >/dev/null
slot plain "'actions', 'insert', 'include-types', '0'"
slot types "'actions', 'insert'"
slot everything "'include-xids', '1', 'include-lsn', '1', 'include-origin', '1',
    'include-type-oids', '1', 'include-not-null', '1', 'include-column-positions', '1',
    'include-pk', '1'"

# Timestamps as text, a tab, microseconds since 1970 as PostgreSQL counts them.
$run -F "$(printf '\t')" -f "$here/timestamps.sql" >"$here/timestamps.tsv"
psql -X -q -d postgres -c "DROP DATABASE $db"
