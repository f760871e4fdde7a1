"""A private PostgreSQL cluster with logical decoding."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kit import process
from kit.scope import Scope
from kit.wait import wait_until

STOP_SIGNAL = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}
SMALL_SHM = 64 << 20
STOP_S = 60


class Postgres(Scope):
    """A PostgreSQL cluster in a temporary directory on a free port of 127.0.0.1.

    Binaries are called by their versioned path ($WALRELAY_PG_BIN, else version 15), over TCP
    only. PostgreSQL refuses to run as root, so for root it runs as user postgres. The superuser
    is `postgres` with a random password; `auth` is a method of pg_hba.conf. Extra `settings` go
    into postgresql.conf. fsync is off: a crash of the server loses nothing, a crash of the
    machine would.
    """

    def __init__(self, auth: str = "scram-sha-256", **settings: str | int) -> None:
        self.auth = auth
        self.settings = settings
        self.password = secrets.token_hex(8)
        self.bin = Path(os.environ.get("WALRELAY_PG_BIN", "/usr/lib/postgresql/15/bin"))
        self.user = "postgres" if os.geteuid() == 0 else None
        self.directory: Path | None = None
        self.port = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._primary: Postgres | None = None

    def open(self) -> None:
        self.start()

    # ------------------------------------------------------------------ life

    def start(self, tries: int = 5) -> None:
        """Make the cluster if there is none yet, start it and wait until it takes connections.

        The first start chooses the port and tries others when that one was taken meanwhile;
        later starts keep it.
        """
        choose_port = self.directory is None
        if self.directory is None:
            self._make_cluster()
        for _ in range(tries):
            if choose_port:
                self.port = process.free_port()
            logged = len(self.log_text())
            if self._try_start():
                return
            if not (choose_port and process.port_taken(self.log_text()[logged:])):
                break
        raise RuntimeError(f"PostgreSQL did not start:\n{self.log_text()[-2000:]}")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server as `pg_ctl stop -m MODE` does. One that has not stopped after a minute is killed,
        and the error says what it waited for."""
        if self._child is None or process.ends(self._child, STOP_SIGNAL[mode], STOP_S):
            return
        left = "\n".join(map(process.describe, process.children(self.pid)))
        self.kill()
        raise RuntimeError(f"PostgreSQL did not stop ({mode}) within {STOP_S} s:\n{left}\n{self.log_text()[-2000:]}")

    def kill(self) -> None:
        """SIGKILL of the postmaster; returns when its children have noticed, so that start() succeeds."""
        children = process.children(self.pid)
        process.finish(self._child, signal.SIGKILL, 10)
        wait_until(lambda: not any(map(process.exists, children)), 60, "the children have gone")

    def restart(self, mode: str = "fast") -> None:
        """Stop in `mode`, start again on the same port."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server at once and remove its directory. May be called twice."""
        try:
            self.stop("immediate")
        finally:
            if self.directory is not None:
                process.remove_directory(self.directory)

    def replica(self, **settings: str | int) -> "Postgres":
        """A streaming replica of this running server, from a base backup; not started yet.

        It has this server's roles and settings and a port of its own; `settings` win. Slots are not
        part of a base backup. After promote() it is a server like any other, with replicas of its own.
        """
        copy = Postgres(self.auth, **settings)
        copy.password, copy.bin, copy._primary = self.password, self.bin, self
        return copy

    def promote(self, limit: float = 60) -> None:
        """Make a primary of a replica; returns when it takes writes."""
        self.execute("SELECT pg_promote(true, %s)", int(limit))
        wait_until(lambda: not self.in_recovery(), limit, "the replica is promoted")

    def in_recovery(self) -> bool:
        """Is this a replica?"""
        return bool(self.execute("SELECT pg_is_in_recovery()")[0][0])

    def wait_replayed(self, lsn: str, limit: float = 30) -> None:
        """Wait until a replica has replayed its primary's WAL up to `lsn`."""
        query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        wait_until(lambda: self.execute(query, lsn)[0][0], limit, f"the replica has replayed {lsn}")

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        assert self._child is not None
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    # ----------------------------------------------------------- connections

    def dsn(self, db: str = "postgres", **parameters: Any) -> str:
        """A connection string for `db` as the superuser, password included; parameters win."""
        base = {"host": "127.0.0.1", "port": self.port, "user": "postgres", "password": self.password}
        return make_conninfo(**{**base, "dbname": db, **parameters})

    def connect(self, db: str = "postgres", **parameters: Any) -> psycopg.Connection[Any]:
        """A psycopg connection in autocommit mode."""
        return psycopg.connect(self.dsn(db, **parameters), autocommit=True)

    def execute(self, query: str, *args: Any, db: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own; return its rows, if it has any."""
        with self.connect(db) as conn:
            cursor = conn.execute(query, args or None)
            return cursor.fetchall() if cursor.description else []

    def psql(self, db: str, script: Path, **variables: str) -> str:
        """Run a script with psql, stopping at the first error; return what it prints."""
        options = [part for name, value in variables.items() for part in ("-v", f"{name}={value}")]
        done = subprocess.run(
            [
                str(self.bin / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", *options,
                "-d", self.dsn(db), "-f", str(script),
            ],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{script.name} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def create_database(self, name: str, encoding: str = "UTF8", locale: str = "C.UTF-8") -> None:
        """Create a database. For an encoding other than UTF8 give locale C."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING {} LOCALE {}")
        with self.connect() as conn:
            conn.execute(statement.format(sql.Identifier(name), encoding, locale))

    def drop_database(self, name: str) -> None:
        """Drop a database with its slots, whoever is connected. Missing is fine."""
        with self.connect() as conn:
            for (slot,) in conn.execute(
                "SELECT slot_name FROM pg_replication_slots WHERE database = %s", [name]
            ).fetchall():
                self.drop_slot(slot)
            conn.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    # ----------------------------------------------------------------- slots

    def drop_slot(self, slot: str) -> None:
        """End whoever streams from `slot` and drop it."""

        def dropped() -> bool:
            self.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
                " WHERE slot_name = %s AND active",
                slot,
            )
            try:
                self.execute(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                    " WHERE slot_name = %s",
                    slot,
                )
            except psycopg.errors.ObjectInUse:
                return False
            return True

        wait_until(dropped, 20, f"slot {slot} is free to be dropped")

    def slot_lag(self, slot: str) -> int:
        """Bytes between the slot's confirmed_flush_lsn and the end of WAL."""
        rows = self.execute(
            "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots"
            " WHERE slot_name = %s",
            slot,
        )
        if not rows:
            raise LookupError(f"no slot {slot}")
        return int(rows[0][0])

    # -------------------------------------------------------------- settings

    def conf(self, **settings: str | int | None) -> None:
        """ALTER SYSTEM SET each setting (None: RESET) and reload.

        A list such as output_plugin_libraries is written unquoted, as the server wants it.
        """
        with self.connect() as conn:
            for name, value in settings.items():
                conn.execute(_alter_system(name, value))
            conn.execute("SELECT pg_reload_conf()")

    # ------------------------------------------------------------------- log

    @property
    def log(self) -> Path:
        assert self.directory is not None
        return self.directory / "log"

    def log_text(self) -> str:
        """What the server has logged so far."""
        return self.log.read_text(errors="replace")

    # --------------------------------------------------------------- private

    def _make_cluster(self) -> None:
        if not (self.bin / "initdb").exists():
            raise RuntimeError(f"no {self.bin}/initdb: run ./dev deps")
        self.directory = process.make_directory("postgres")
        self.log.touch()
        if self.user:
            shutil.chown(self.directory, self.user, self.user)
        if self._primary is None:
            self._initdb()
            self._write_settings(self._all_settings())
        else:
            self._copy(self._primary)
            self._write_settings(self.settings)

    def _copy(self, primary: "Postgres") -> None:
        self._run(
            "pg_basebackup", "-D", self._data, "-d", primary.dsn(), "-X", "stream", "-c", "fast",
            "--write-recovery-conf", "--no-sync",
        )  # fmt: skip

    def _initdb(self) -> None:
        assert self.directory is not None
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        self._run(
            "initdb", "-D", self._data, "-U", "postgres", "-A", self.auth, "--pwfile", password_file,
            "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
        )  # fmt: skip
        password_file.unlink()

    def _write_settings(self, settings: dict[str, str | int]) -> None:
        with (self._data / "postgresql.conf").open("a") as out:
            for name, value in settings.items():
                quoted = str(value).replace("'", "''")
                out.write(f"{name} = '{quoted}'\n")

    def _all_settings(self) -> dict[str, str | int]:
        settings: dict[str, str | int] = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "wal_level": "logical",
            "max_wal_senders": 20,
            "max_replication_slots": 20,
            "max_prepared_transactions": 10,
            "shared_buffers": "32MB",
            "fsync": "off",
            "log_line_prefix": "%m [%p] %q%a ",
        }
        if shutil.disk_usage("/dev/shm").total < SMALL_SHM:
            settings["dynamic_shared_memory_type"] = "mmap"
        if self.knows("output_plugin_libraries"):
            settings["output_plugin_libraries"] = "pgoutput, test_decoding, wal2json"
        return {**settings, **self.settings}

    def knows(self, setting: str) -> bool:
        """Does this server have such a setting?"""
        return self._call("postgres", "-D", self._data, "-C", setting).returncode == 0

    @property
    def _data(self) -> Path:
        assert self.directory is not None
        return self.directory / "data"

    def _call(self, program: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [str(self.bin / program), *map(str, args)], cwd="/", env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            **process.identity(self.user),
        )  # fmt: skip
        return done

    def _run(self, program: str, *args: str | Path) -> None:
        done = self._call(program, *args)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")

    def _try_start(self) -> bool:
        self._child = process.spawn(
            [self.bin / "postgres", "-D", self._data, "-p", str(self.port)],
            self.log,
            user=self.user,
            env={**os.environ, **ENVIRONMENT},
            death_signal=signal.SIGQUIT,
        )
        return wait_until(self._answer, 60, "PostgreSQL is ready") == "ready"

    def _answer(self) -> str | None:
        if not self.running:
            return "gone"
        try:
            ((directory,),) = self.execute("SHOW data_directory")
        except psycopg.OperationalError:
            return None
        return "ready" if directory == str(self._data) else None  # else it is somebody else's port


def _alter_system(name: str, value: str | int | None) -> sql.Composed:
    if value is None:
        return sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(name))
    if "," in str(value):
        items = sql.SQL(", ").join(sql.Literal(item.strip()) for item in str(value).split(","))
        return sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), items)
    return sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
