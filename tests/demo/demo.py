"""./dev demo: a small shop, the relay, Kafka, a consumer, an outage, and an event that Kafka does not take.

Exits 0 only if everything that was committed arrived, nothing that was rolled back did, the
order per key is right, and the event that was refused was seen, held its key and was published after
all. With a terminal and without --once it then stays up until Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import shlex
import sys
import time
from contextlib import ExitStack

import psycopg

from kit import process
from kit.checker import Record, Report
from kit.dead_letters import LETTERS
from kit.jars import KAFKA
from kit.kafka import Kafka
from kit.lab import TABLE, Lab
from kit.postgres import Postgres
from kit.relay import ROOT, Relay, relay_binary
from kit.wait import wait_until

TOPICS = "outbox.event."
PACE = 0.12
LIMIT = 20_000  # bytes of a record, until somebody raises it
LINES = 1000  # of an order that is larger
ENV_FILE = ROOT / "build" / "demo.env"
ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric, status text)"
CUSTOMERS = ["ada", "grace", "edsger", "barbara", "donald"]


def say(text: str = "") -> None:
    print(text, flush=True)


class Shop:
    """Takes orders and pays them, each step one transaction together with its event."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.orders = 0
        self.rolled_back = 0
        lab.conn.execute(ORDERS)

    def take_order(self, fails: bool = False, lines: int = 0) -> str:
        """A new order and its event, whose id is returned; with `fails` the transaction rolls back in the end."""
        self.orders += 1
        customer, amount = random.choice(CUSTOMERS), f"{random.randrange(500, 20000) / 100:.2f}"
        with self.lab.writer.transaction(rollback=fails) as conn:
            conn.execute("INSERT INTO orders VALUES (%s, %s, %s, 'new')", [self.orders, customer, amount])
            event = self._event("OrderPlaced", f'{{"customer": "{customer}", "amount": {amount}{list_of(lines)}}}')
        self.rolled_back += fails
        say(f"  shop     order-{self.orders:<3} {'rolled back' if fails else 'committed'}")
        return event

    def take_payment(self) -> None:
        """The last order is paid: an update and its event."""
        with self.lab.writer.transaction() as conn:
            conn.execute("UPDATE orders SET status = 'paid' WHERE id = %s", [self.orders])
            self._event("OrderPaid", '{"method": "card"}')
        say(f"  shop     order-{self.orders:<3} paid")

    def _event(self, event: str, payload: str) -> str:
        return self.lab.writer.insert(f"order-{self.orders}", payload, kind="order", event=event)


def list_of(lines: int) -> str:
    """A member of a JSON object, which no compression makes small; nothing without lines."""
    articles = ", ".join(f'"{secrets.token_hex(16)}"' for _ in range(lines))
    return f', "lines": [{articles}]' if lines else ""


class Demo:
    """The play and its screen."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.shop = Shop(lab)
        self.printed = 0
        self.relay = set_up(lab)
        self.relay.start()
        lab.wait_streaming(self.relay)

    def sell(self, orders: int, watch: bool = True) -> None:
        """Take some orders; the third of each five rolls back, the others are paid."""
        for number in range(orders):
            fails = number % 5 == 2
            self.shop.take_order(fails)
            if not fails:
                self.shop.take_payment()
            time.sleep(PACE)
            if watch:
                self.lab.checker.collect()
                self.show_arrivals()

    def show_arrivals(self) -> None:
        """Print what the checker has read from Kafka since the last time."""
        records = self.lab.checker.records
        for record in records[self.printed :]:
            say(f"  kafka    {describe(record)}")
        self.printed = len(records)

    def show_slot(self) -> None:
        """Print how far the slot is behind the WAL."""
        slot = self.lab.slot_row()
        lag = self.lab.postgres.slot_lag(self.lab.slot)
        say(f"  slot     confirmed_flush_lsn {slot['confirmed_flush_lsn']}, {lag} bytes of WAL not confirmed")

    def all_arrived(self) -> bool:
        return not self._missing()

    def outage(self) -> None:
        """Stop the broker, sell on, look at the slot, bring the broker back."""
        self.lab.kafka.stop()
        say("\nThe broker is down. Orders go on, and the slot holds them back:")
        for _ in range(3):
            self.sell(3, watch=False)
            self.show_slot()
        say("\nThe broker returns:")
        self.lab.kafka.start()
        wait_until(self.all_arrived, 120, lambda: f"all events arrive\n{self.lab.checker.report()}")
        self.lab.wait_quiet(limit=1)
        self.show_slot()

    def poison(self) -> None:
        """An event that the topic does not take: the alert, what is known of it, its cure."""
        say(f"\nAn order of {LINES} lines is more than the topic takes. All others go on, what is behind it waits:")
        refused = {self.shop.take_order(lines=LINES)}
        self.shop.take_payment()
        self.sell(2)
        said = self.relay.wait_for_log(r"^\S+ warning a dead letter: .*$")
        say(f"  relay    {said.group()}")
        wait_until(lambda: self._letters().keys() == {"waiting", "held"}, 30, lambda: f"{self._letters()}")
        wait_until(lambda: self._missing() == refused | self._letters()["held"], 30, "all others arrive")
        self.command("list")
        say("\nThe topic's limit is raised, and what waits is tried again:")
        self.lab.kafka.alter_topic(f"{TOPICS}order", max_message_bytes=100 * LIMIT)
        self.command("retry", "--all")
        wait_until(self.all_arrived, 60, lambda: f"the dead letters arrive\n{self.lab.checker.report()}")
        wait_until(lambda: self._letters().keys() == {"resolved"}, 30, lambda: f"{self._letters()}")
        self.lab.wait_quiet(limit=1)

    def _missing(self) -> set[str]:
        missing = set(self.lab.checker.missing())
        self.show_arrivals()
        return missing

    def _letters(self) -> dict[str, set[str]]:
        """The events in the table of dead letters, by state."""
        found: dict[str, set[str]] = {}
        for event, state in self.lab.conn.execute(f"SELECT event_id, state FROM {LETTERS}").fetchall():
            found.setdefault(state, set()).add(event)
        return found

    def command(self, *words: str) -> None:
        """Type `walrelay dead-letters`, and show what it says."""
        done = self.relay.call("dead-letters", *words)
        if done.returncode != 0:
            raise RuntimeError(f"walrelay dead-letters failed: {done.stderr}")
        say(f"  $ walrelay dead-letters {' '.join(words)}")
        for line in done.stdout.splitlines():
            say(f"  {line}")

    def play(self) -> bool:
        """The whole play; was everything as promised?"""
        say("\nThe shop opens. Each order and its event are one transaction:")
        self.sell(8)
        wait_until(self.all_arrived, 120, lambda: f"all events arrive\n{self.lab.checker.report()}")
        self.outage()
        self.poison()
        leaked = self.lab.checker.rolled_back & {str(event_id(r)) for r in self.lab.checker.records}
        report = self.lab.checker.report()
        self.show_summary(report, len(leaked))
        return report.ok and not leaked

    def show_summary(self, report: Report, leaked: int) -> None:
        say(f"""
  events committed            {report.committed:6}
  published                   {report.published:6}
  missing                     {len(report.lost):6}
  published twice             {report.duplicates:6}
  dead letters, all resolved  {len(self._letters()["resolved"]):6}
  out of order within a key   {len(report.disordered):6}
  rolled back                 {len(self.lab.checker.rolled_back):6}
  rolled back, yet published  {leaked:6}
  slot lag                    {self.lab.postgres.slot_lag(self.lab.slot):6} bytes""")


def set_up(lab: Lab) -> Relay:
    """`walrelay setup | psql` as the superuser; the relay itself connects with a role of its own."""
    password = secrets.token_hex(8)
    relay = lab.relay({"postgres": {"dsn": lab.postgres.dsn(lab.db, user="walrelay", password=password)}})
    printed = relay.call("setup")
    if printed.returncode != 0:
        raise RuntimeError(f"walrelay setup failed: {printed.stderr}")
    script = lab.directory / "setup.sql"
    script.write_text(printed.stdout)
    lab.postgres.psql(lab.db, script)
    lab.conn.execute(f"ALTER ROLE walrelay PASSWORD '{password}'")
    return relay


def event_id(record: Record) -> str:
    return (record.header("id") or b"").decode()


def describe(record: Record) -> str:
    """A record on one line: place, key, headers, value."""
    headers = " ".join(f"{name}={(value or b'').decode()[:13]}" for name, value in record.headers)
    key, value = ((part or b"").decode() for part in (record.key, record.value))
    if len(value) > 100:
        value = f"{value[:100]}… {len(value)} bytes"
    return f"{record.topic}[{record.partition}]@{record.offset:<2} key={key:<8} {headers} {value}"


def write_environment(lab: Lab) -> None:
    """What `./dev shell` needs to know."""
    kcat = lab.directory / "kcat.conf"
    kcat.write_text(f"bootstrap.servers={lab.kafka.bootstrap}\n")
    variables = {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(lab.postgres.port),
        "PGUSER": "postgres",
        "PGPASSWORD": lab.postgres.password,
        "PGDATABASE": lab.db,
        "KCAT_CONFIG": str(kcat),
        "DEMO_CONF": str(lab.relays[0].config_file),
        "PATH": f"{relay_binary().parent}:{lab.postgres.bin}:{os.environ['PATH']}",
    }
    ENV_FILE.touch(mode=0o600)
    ENV_FILE.write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items()))


def stay(lab: Lab) -> None:
    """Print what can be played with, then wait for Ctrl-C."""
    write_environment(lab)
    insert = f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
    say(f"""
Everything still runs. In another terminal:

  ./dev shell      a shell in which these work without further ado:
    psql -c "{insert}
             VALUES ('order', 'order-1', 'OrderShipped', '{{}}')"
    kcat -C -t {TOPICS}order -f '%k %h %s\\n'
    walrelay check -c $DEMO_CONF

  tail -f {lab.relays[0].log}

Ctrl-C stops it all.""")
    try:
        while lab.relays[0].running:
            time.sleep(0.5)
        say(f"walrelay ended:\n{lab.relays[0].log_text()[-2000:]}")
    except KeyboardInterrupt:
        say("\nstopping")
    finally:
        ENV_FILE.unlink(missing_ok=True)


def run(once: bool) -> bool:
    """Start everything, play, stop everything."""
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres())
        ((version,),) = postgres.execute("SHOW server_version")
        say(f"PostgreSQL {version.split()[0]} on 127.0.0.1:{postgres.port}")
        kafka = stack.enter_context(Kafka())
        say(f"Kafka {KAFKA.version('kafka')} on {kafka.bootstrap}")
        lab = stack.enter_context(Lab(postgres, kafka, "shop", prefix=TOPICS))
        lab.topic("order", 3, {"max.message.bytes": str(LIMIT)})
        demo = Demo(lab)
        say(f"walrelay streams from slot {lab.slot} as role walrelay, to topic {TOPICS}order")
        good = demo.play()
        if not once:
            stay(lab)
        return good


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev demo")
    parser.add_argument("--once", action="store_true", help="stop at the end, also with a terminal")
    arguments = parser.parse_args()
    process.raise_on_termination()
    process.forget_libpq_environment()
    try:
        good = run(once=arguments.once or not sys.stdout.isatty())
    except KeyboardInterrupt:
        return 130
    except (RuntimeError, TimeoutError, psycopg.Error) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
