"""What is wrong on the server is named with the statement that mends it, by `check` and by `run`."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator, Mapping
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kit import process
from kit.kafka import Kafka
from kit.lab import TABLE, Lab
from kit.postgres import Postgres
from kit.relay import Config
from kit.wait import wait_until

SLOT_EXIT, DENIED_EXIT, CONFIG_EXIT, AWAY_EXIT = 66, 77, 78, 70
SECTION = f"table {TABLE}"
COLUMNS = "(id uuid, aggregate_type text, aggregate_id text, event_type text, payload jsonb)"
Done = subprocess.CompletedProcess[str]


def check(lab: Lab, changes: Config | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run `walrelay check` with the lab's configuration and these changes."""
    return lab.relay(changes, env=env).call("check")


def passes(lab: Lab, changes: Config | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run it, expect that all passes, return what it printed."""
    done = check(lab, changes, env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    return done.stdout


def fails(lab: Lab, code: int, changes: Config | None = None) -> str:
    """Run it, expect this exit code, return the lines that begin with FAILED.

    `walrelay run` must end with the same code, for one of these reasons, unless waiting may help.
    """
    done = check(lab, changes)
    assert done.returncode == code, done.stdout + done.stderr
    reasons = re.findall(r"^FAILED +(.*)$", done.stdout, re.MULTILINE)
    assert reasons, done.stdout + done.stderr
    if code != AWAY_EXIT:
        relay = lab.relay(changes)
        relay.start()
        assert relay.wait_exit(5) == code, relay.log_text()
        assert any(reason in relay.log_text() for reason in reasons), relay.log_text()
    return "\n".join(reasons)


def other_table(name: str, **settings: str) -> dict[str, dict[str, str]]:
    """Changes that add a section for another table."""
    return {f"table {name}": settings}


@pytest.fixture
def settings(lab: Lab) -> Iterator[Any]:
    """Postgres.conf of the shared server; what was set is reset in the end."""
    names: set[str] = set()

    def conf(**changes: str | int | None) -> None:
        names.update(changes)
        lab.postgres.conf(**changes)

    yield conf
    lab.postgres.conf(**{name: None for name in names})


def test_a_server_that_has_everything_passes(lab: Lab) -> None:
    lab.make_slot()
    printed = passes(lab)
    assert re.search(rf"^ok +slot: {lab.slot}$", printed, re.MULTILINE)
    assert re.search(rf"^ok +table {TABLE}$", printed, re.MULTILINE)


# ------------------------------------------------------------------- the server


def allows_every_plugin(lab: Lab) -> bool:
    """Minor releases before 15.19 do not know the setting; nothing may be said of it then."""
    if lab.postgres.knows("output_plugin_libraries"):
        return False
    assert "ALTER SYSTEM" not in passes(lab)
    return True


def test_a_plugin_that_the_server_refuses_is_allowed_by_the_statement_that_check_prints_A01(
    lab: Lab, settings: Any
) -> None:
    lab.make_slot()
    if allows_every_plugin(lab):
        return
    lab.writer.number("k", 1, 2, 3)
    settings(output_plugin_libraries="pgoutput, test_decoding")
    wait_until(lambda: check(lab).returncode == CONFIG_EXIT, 10, "the server refuses wal2json")
    line = fails(lab, CONFIG_EXIT)
    assert "output_plugin_libraries is pgoutput, test_decoding" in line
    statement = re.search(r"ALTER SYSTEM SET output_plugin_libraries = [^;]*", line)
    assert statement
    lab.conn.execute(statement.group())
    lab.conn.execute("SELECT pg_reload_conf()")
    wait_until(lambda: check(lab).returncode == 0, 10, "the server allows wal2json")
    lab.topic("order")
    lab.running_relay()
    lab.verify(duplicates=0)


def test_a_list_of_plugins_in_one_pair_of_quotes_is_refused_A01(lab: Lab) -> None:
    lab.make_slot()
    if allows_every_plugin(lab):
        return
    lab.conn.execute("ALTER SYSTEM SET output_plugin_libraries = 'pgoutput, wal2json'")
    lab.conn.execute("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: check(lab).returncode == CONFIG_EXIT, 10, "the server refuses wal2json")
        assert '"pgoutput, wal2json"' in fails(lab, CONFIG_EXIT)
    finally:
        lab.postgres.conf(output_plugin_libraries=None)


@pytest.mark.parametrize("server", [{"wal_level": "replica"}], indirect=True)
def test_a_wal_level_that_is_too_low_is_named_A02(own_lab: Lab) -> None:
    lines = fails(own_lab, CONFIG_EXIT)
    assert "wal_level is replica" in lines
    assert "ALTER SYSTEM SET wal_level = logical" in lines
    assert own_lab.slot_row() == {}


@pytest.mark.parametrize("names", ["*", "first_one, WALRELAY", "ANY 1 (s1, walrelay)"])
def test_a_relay_that_would_be_a_synchronous_standby_is_refused(lab: Lab, settings: Any, names: str) -> None:
    lab.make_slot()
    literal = sql.Literal(names)
    lab.conn.execute(sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(literal))
    settings(log_min_duration_statement=None)  # reloads
    try:
        wait_until(lambda: check(lab).returncode != 0, 10, "the server names the relay")
        assert f"synchronous_standby_names = '{names}'" in fails(lab, CONFIG_EXIT)
        dsn = lab.postgres.dsn(lab.db, application_name="other")
        if names != "*":
            passes(lab, {"postgres": {"dsn": dsn}})
    finally:
        lab.conn.execute("ALTER SYSTEM RESET synchronous_standby_names")


def test_a_role_with_the_least_rights_passes(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute("CREATE ROLE least LOGIN REPLICATION PASSWORD 'pw'")
    try:
        printed = passes(lab, {"postgres": {"dsn": lab.postgres.dsn(lab.db, user="least", password="pw")}})
        assert "output_plugin_libraries: cannot tell" in printed
    finally:
        lab.conn.execute("DROP ROLE least")


def test_a_role_without_replication_is_told_the_statement_A11(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute("CREATE ROLE plain LOGIN PASSWORD 'pw'")
    try:
        dsn = lab.postgres.dsn(lab.db, user="plain", password="pw")
        lines = fails(lab, DENIED_EXIT, {"postgres": {"dsn": dsn}})
    finally:
        lab.conn.execute("DROP ROLE plain")
    assert "replication connection" in lines
    assert "SQL connection" not in lines
    assert "ALTER ROLE plain REPLICATION" in lines


def test_a_pg_hba_line_for_the_database_replication_does_not_serve_A11(own_lab: Lab) -> None:
    own_lab.make_slot()
    own_lab.conn.execute("CREATE ROLE relay LOGIN REPLICATION PASSWORD 'pw'")
    ((file,),) = own_lab.postgres.execute("SHOW hba_file")
    method = "127.0.0.1/32 scram-sha-256"
    Path(file).write_text(f"host replication relay {method}\nhost all postgres {method}\n")
    own_lab.conn.execute("SELECT pg_reload_conf()")
    dsn = own_lab.postgres.dsn(own_lab.db, user="relay", password="pw")
    changes = {"postgres": {"dsn": dsn}}
    wait_until(lambda: check(own_lab, changes).returncode, 10, "the server has read pg_hba.conf")
    lines = fails(own_lab, DENIED_EXIT, changes)
    assert "no pg_hba.conf entry" in lines
    assert 'a line for the database "replication" does not serve' in lines


def only_walsender(dsn: str) -> psycopg.Connection[Any]:
    """A replication connection, once the server has noticed that the one before it is gone."""
    opened: list[psycopg.Connection[Any]] = []

    def free() -> bool:
        try:
            opened.append(psycopg.connect(dsn + " replication=database", autocommit=True))
        except psycopg.OperationalError:
            return False
        return True

    wait_until(free, 10, "a walsender is free")
    return opened[0]


@pytest.mark.parametrize("server", [{"max_wal_senders": 1}], indirect=True)
def test_a_server_without_a_free_walsender_is_named_and_waited_for_A11(own_lab: Lab) -> None:
    own_lab.make_slot()
    passes(own_lab)
    own_lab.conn.execute("CREATE ROLE relay LOGIN REPLICATION PASSWORD 'pw'")
    dsn = own_lab.postgres.dsn(own_lab.db, user="relay", password="pw")
    with only_walsender(dsn):
        lines = fails(own_lab, AWAY_EXIT, {"postgres": {"dsn": dsn}})
        assert "replication connection" in lines and "max_wal_senders" in lines
        assert "SQL connection" not in lines
        relay = own_lab.relay({"postgres": {"dsn": dsn}})
        relay.start()
        relay.wait_for_log("max_wal_senders")
        assert relay.running
    own_lab.wait_streaming(relay)


# ---------------------------------------------------------- connection strings

PASSWORD = "p@ss:w/o rd'\\%&=#"


@pytest.fixture
def odd(lab: Lab) -> Iterator[dict[str, Any]]:
    """Connection parameters of a role and a database with odd names and an odd password."""
    role, database = 'we"ird', f"My Db {lab.db}"
    lab.postgres.create_database(database)
    with lab.postgres.connect(database) as conn:
        conn.execute(
            sql.SQL("CREATE ROLE {} LOGIN REPLICATION PASSWORD {}").format(sql.Identifier(role), PASSWORD)
        )
        conn.execute(f"CREATE TABLE {TABLE} {COLUMNS}")
        conn.execute("SELECT pg_create_logical_replication_slot(%s, 'wal2json')", [lab.slot])
    yield {"host": "127.0.0.1", "port": lab.postgres.port, "user": role, "dbname": database}
    lab.postgres.drop_database(database)
    lab.conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_a_uri_with_percent_encoded_parts_connects_A12(lab: Lab, odd: dict[str, Any]) -> None:
    user, password, database = (quote(part, safe="") for part in (odd["user"], PASSWORD, odd["dbname"]))
    dsn = f"postgresql://{user}:{password}@127.0.0.1:{odd['port']}/{database}"
    assert PASSWORD not in passes(lab, {"postgres": {"dsn": dsn}})


def test_quoted_key_value_pairs_connect_A12(lab: Lab, odd: dict[str, Any]) -> None:
    passes(lab, {"postgres": {"dsn": make_conninfo(password=PASSWORD, **odd)}})


def test_a_password_file_serves_A12(lab: Lab, odd: dict[str, Any]) -> None:
    file = lab.directory / "pgpass"
    file.touch(mode=0o600)
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    file.write_text(f"*:*:*:*:{escaped}\n")
    passes(lab, {"postgres": {"dsn": make_conninfo(**odd)}}, {"PGPASSFILE": str(file)})


def test_parameters_from_the_environment_serve_A12(lab: Lab, odd: dict[str, Any]) -> None:
    env = {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(odd["port"]),
        "PGUSER": odd["user"],
        "PGDATABASE": odd["dbname"],
        "PGPASSWORD": PASSWORD,
    }
    passes(lab, {"postgres": {"dsn": "application_name=odd"}}, env)


def test_a_wrong_password_is_denied_and_not_shown_A12_A13(lab: Lab, odd: dict[str, Any]) -> None:
    done = check(lab, {"postgres": {"dsn": make_conninfo(password="se/cret", **odd)}})
    assert done.returncode == DENIED_EXIT
    assert "password authentication failed" in done.stdout
    assert "se/cret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "dsn",
    [
        "host=127.0.0.1 user=u password=top secret",
        "host=127.0.0.1 user=u password=top secret=1",
        "postgresql://u:top@secret@127.0.0.1/db",
        "postgresql://u:top/secret@127.0.0.1/db",
        "postgresql://u:top%zzsecret@127.0.0.1/db",
    ],
)
def test_a_password_that_is_not_quoted_is_not_shown_A12(lab: Lab, dsn: str) -> None:
    done = check(lab, {"postgres": {"dsn": dsn}})
    assert done.returncode == CONFIG_EXIT, done.stdout + done.stderr
    assert "dsn" in done.stdout + done.stderr
    assert "top" not in done.stdout + done.stderr
    assert "secret" not in done.stdout + done.stderr


# ---------------------------------------------------------------------- TLS


@pytest.fixture
def certificates() -> Iterator[Path]:
    """A folder with server.crt and server.key for 127.0.0.1, and other.crt."""
    folder = process.make_directory("tls")
    for name in ("server", "other"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"],
            check=True, capture_output=True,
        )  # fmt: skip
        (folder / f"{name}.key").chmod(0o600)
    yield folder
    process.remove_directory(folder)


def test_a_server_of_an_untrusted_authority_is_refused_A13(certificates: Path, kafka: Kafka) -> None:
    server = Postgres(
        ssl="on",
        ssl_cert_file=str(certificates / "server.crt"),
        ssl_key_file=str(certificates / "server.key"),
    )
    if server.user:
        shutil.chown(certificates / "server.key", server.user)
    with server, Lab(server, kafka, "tls") as lab:
        lab.make_slot()
        wanted = {"sslmode": "verify-full", "sslrootcert": str(certificates / "other.crt")}
        lines = fails(lab, CONFIG_EXIT, {"postgres": {"dsn": server.dsn(lab.db, **wanted)}})
        assert "certificate verify failed" in lines
        wanted["sslrootcert"] = str(certificates / "server.crt")
        passes(lab, {"postgres": {"dsn": server.dsn(lab.db, **wanted)}})


# -------------------------------------------------------------------- the slot


def test_a_missing_slot_is_refused_and_not_made_A04(lab: Lab) -> None:
    line = fails(lab, SLOT_EXIT)
    assert f"slot {lab.slot} does not exist" in line
    assert f"pg_create_logical_replication_slot('{lab.slot}', 'wal2json')" in line
    assert "events committed before that are not in the new slot" in line
    assert lab.slot_row() == {}


@pytest.mark.parametrize("plugin", ["test_decoding", "pgoutput"])
def test_a_slot_of_another_plugin_is_refused_and_named_A05(lab: Lab, plugin: str) -> None:
    lab.make_slot(plugin)
    before = lab.slot_row()
    assert f"slot {lab.slot} uses plugin {plugin} and walrelay needs wal2json" in fails(lab, CONFIG_EXIT)
    assert lab.slot_row() == before


def test_a_slot_of_another_database_is_named_A06(lab: Lab) -> None:
    with lab.postgres.connect("postgres") as conn:
        conn.execute("SELECT pg_create_logical_replication_slot(%s, 'wal2json')", [lab.slot])
    try:
        line = fails(lab, SLOT_EXIT)
    finally:
        lab.postgres.drop_slot(lab.slot)
    assert f"slot {lab.slot} belongs to database postgres but the dsn connects to {lab.db}" in line


def test_a_physical_slot_is_named_A06(lab: Lab) -> None:
    lab.conn.execute("SELECT pg_create_physical_replication_slot(%s, true)", [lab.slot])
    try:
        line = fails(lab, CONFIG_EXIT)
    finally:
        lab.postgres.drop_slot(lab.slot)
    assert f"slot {lab.slot} is a physical slot" in line


def test_a_slot_that_lost_wal_is_refused_and_one_about_to_is_warned_of_A08(lab: Lab, settings: Any) -> None:
    lab.make_slot()
    settings(max_slot_wal_keep_size="1MB")

    def write_wal(status: str) -> bool:
        lab.conn.execute("CREATE TABLE noise AS SELECT repeat('x', 100) FROM generate_series(1, 1000)")
        lab.conn.execute("DROP TABLE noise")
        lab.conn.execute("SELECT pg_switch_wal()")
        return bool(lab.slot_row()["wal_status"] == status)

    wait_until(lambda: write_wal("unreserved"), 20, "the slot holds more WAL than it may")
    assert re.search(r"^warning .*will be lost at the next checkpoint", passes(lab), re.MULTILINE)
    lab.conn.execute("CHECKPOINT")
    wait_until(lambda: lab.slot_row()["wal_status"] == "lost", 20, "the slot is lost")
    row = lab.slot_row()
    line = fails(lab, SLOT_EXIT)
    assert f"slot {lab.slot} is lost" in line
    assert f"events committed between {row['confirmed_flush_lsn']} and" in line
    assert f"pg_drop_replication_slot('{lab.slot}')" in line
    assert lab.slot_row() == row


# ----------------------------------------------------------------- the tables

NAMES = ['"Sales Dept"."Out box.v1"', '"a,b"."c*d"', '"quo\'te"."back\\slash"', '"日本"."表"']


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_found_by_its_name_in_sql_and_one_that_differs_in_case_is_not_A14(lab: Lab, name: str) -> None:
    lab.make_slot()
    lab.conn.execute(f"CREATE SCHEMA {name.split('.')[0]}; CREATE TABLE {name} {COLUMNS}")
    assert f"table {name}" in passes(lab, other_table(name))
    wrong = name.replace("box", "Box").replace("*d", "*D").replace("slash", "Slash").replace("表", "裏")
    assert f"the nearest name is {name}" in fails(lab, CONFIG_EXIT, other_table(wrong))


def test_an_unquoted_name_is_folded_as_sql_folds_it_A14(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(f"CREATE TABLE shouting {COLUMNS}")
    passes(lab, other_table("Public.SHOUTING"))


def test_a_missing_table_is_refused_with_the_nearest_name_A14(lab: Lab) -> None:
    lab.make_slot()
    line = fails(lab, CONFIG_EXIT, other_table("public.outbox_event"))
    assert f"table public.outbox_event does not exist in this database, the nearest name is {TABLE}" in line


def test_partitions_and_children_are_found_A32(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(
        f"CREATE TABLE parent (LIKE {TABLE}) PARTITION BY LIST (aggregate_type);"
        " CREATE TABLE p_a PARTITION OF parent FOR VALUES IN ('a') PARTITION BY LIST (aggregate_id);"
        " CREATE TABLE p_a_1 PARTITION OF p_a DEFAULT; CREATE TABLE p_rest PARTITION OF parent DEFAULT;"
        f" CREATE TABLE child () INHERITS ({TABLE})"
    )
    printed = passes(lab, other_table("public.parent"))
    assert re.search(r"^ok +rows in public\.parent: 2 tables$", printed, re.MULTILINE)
    assert re.search(rf"^ok +rows in {re.escape(TABLE)}: 2 tables$", printed, re.MULTILINE)


def test_a_table_without_partitions_is_warned_of_A32(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(f"CREATE TABLE parent (LIKE {TABLE}) PARTITION BY LIST (aggregate_type)")
    assert re.search(r"^warning .*has no partition yet", passes(lab, other_table("public.parent")), re.MULTILINE)


def test_an_unlogged_table_is_refused_A32(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(f"CREATE UNLOGGED TABLE fast {COLUMNS}")
    assert "ALTER TABLE public.fast SET LOGGED" in fails(lab, CONFIG_EXIT, other_table("public.fast"))


def test_an_unlogged_partition_is_refused_A32(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(
        f"CREATE TABLE parent (LIKE {TABLE}) PARTITION BY LIST (aggregate_type);"
        " CREATE UNLOGGED TABLE p_fast PARTITION OF parent DEFAULT"
    )
    assert "ALTER TABLE public.p_fast SET LOGGED" in fails(lab, CONFIG_EXIT, other_table("public.parent"))


def test_a_view_is_refused(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(f"CREATE VIEW seen AS SELECT * FROM {TABLE}")
    assert "public.seen is a view" in fails(lab, CONFIG_EXIT, other_table("public.seen"))


def test_a_table_and_its_partition_cannot_both_have_a_section(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(f"CREATE TABLE child () INHERITS ({TABLE})")
    assert "belong to two sections" in fails(lab, CONFIG_EXIT, other_table("public.child"))


def test_a_missing_column_is_refused_with_the_nearest_name(lab: Lab) -> None:
    lab.make_slot()
    line = fails(lab, CONFIG_EXIT, {SECTION: {"key": "agregate_id"}})
    assert "agregate_id" in line and '"aggregate_id"' in line


@pytest.mark.parametrize(
    "setting, column, type_, words",
    [
        ("partition", "shard", "text", "the partition needs smallint, integer or bigint"),
        ("timestamp", "at", "date", "the timestamp needs timestamp with or without time zone"),
        ("topic", "raw", "bytea", "the name of a topic needs text"),
    ],
)
def test_a_column_of_an_unusable_type_is_refused(
    lab: Lab, setting: str, column: str, type_: str, words: str
) -> None:
    lab.make_slot()
    lab.conn.execute(f"ALTER TABLE {TABLE} ADD COLUMN {column} {type_}")
    value = "t.{raw}" if setting == "topic" else column
    assert words in fails(lab, CONFIG_EXIT, {SECTION: {setting: value}})


def test_a_type_is_judged_below_its_domains(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(
        "CREATE DOMAIN shard AS int; CREATE DOMAIN small_shard AS shard CHECK (VALUE < 9);"
        f" ALTER TABLE {TABLE} ADD COLUMN shard small_shard"
    )
    passes(lab, {SECTION: {"partition": "shard"}})


def typed(lab: Lab, changes: Config | None = None) -> bool:
    """Would the stream carry types?"""
    match = re.search(r"^ok +settings: rows come (with their|without) types$", passes(lab, changes), re.MULTILINE)
    assert match
    return match[1] == "with their"


def test_types_are_asked_for_only_if_a_mapped_column_is_bytea(lab: Lab) -> None:
    lab.conn.execute(
        "CREATE DOMAIN raw AS bytea; CREATE DOMAIN rawer AS raw;"
        f" ALTER TABLE {TABLE} ADD COLUMN body bytea, ADD COLUMN wrapped rawer"
    )
    lab.make_slot()
    assert not typed(lab)
    assert typed(lab, {SECTION: {"payload": "body"}})
    assert typed(lab, {SECTION: {"headers": "wrapped"}})


def test_types_are_asked_for_if_a_mapped_column_was_altered_in_the_backlog(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(f"ALTER TABLE {TABLE} ALTER COLUMN attempts TYPE bigint")
    assert not typed(lab)
    lab.conn.execute(f"ALTER TABLE {TABLE} ALTER COLUMN payload TYPE bytea USING payload::text::bytea")
    lab.conn.execute(f"ALTER TABLE {TABLE} ALTER COLUMN payload TYPE text USING encode(payload, 'hex')")
    assert typed(lab)


# ------------------------------------------------------------------- encodings


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "KOI8R", "SQL_ASCII"])
def test_encodings_of_one_byte_a_character_are_accepted_A18(lab: Lab, encoding: str) -> None:
    printed = in_encoding(lab, encoding)
    assert printed.returncode == 0, printed.stdout
    assert re.search(rf"^ok +encoding: {encoding}", printed.stdout, re.MULTILINE)


def test_other_encodings_of_many_bytes_are_refused_A18(lab: Lab) -> None:
    printed = in_encoding(lab, "EUC_JP")
    assert printed.returncode == CONFIG_EXIT
    assert "encoding EUC_JP is not supported" in printed.stdout


def in_encoding(lab: Lab, encoding: str) -> Done:
    """Check a database of that encoding."""
    database = f"{lab.db}_{encoding.lower()}"
    lab.postgres.create_database(database, encoding, "C")
    try:
        with lab.postgres.connect(database) as conn:
            conn.execute(f"CREATE TABLE {TABLE} {COLUMNS}")
            conn.execute("SELECT pg_create_logical_replication_slot(%s, 'wal2json')", [lab.slot])
        return check(lab, {"postgres": {"dsn": lab.postgres.dsn(database)}})
    finally:
        lab.postgres.drop_database(database)
