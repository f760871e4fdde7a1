"""./dev demo: a small shop, the relay, Kafka, a consumer, and an outage in the middle.

Exits 0 only if everything that was committed arrived, nothing that was rolled back did, and the
order per key is right. With a terminal and without --once it then stays up until Ctrl-C.
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
from kit.jars import KAFKA
from kit.kafka import Kafka
from kit.lab import TABLE, Lab
from kit.postgres import Postgres
from kit.relay import ROOT, Relay, relay_binary
from kit.wait import wait_until

TOPICS = "outbox.event."
PACE = 0.12
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

    def take_order(self, fails: bool = False) -> None:
        """A new order and its event; with `fails` the transaction rolls back in the end."""
        self.orders += 1
        customer, amount = random.choice(CUSTOMERS), f"{random.randrange(500, 20000) / 100:.2f}"
        with self.lab.writer.transaction(rollback=fails) as conn:
            conn.execute("INSERT INTO orders VALUES (%s, %s, %s, 'new')", [self.orders, customer, amount])
            self._event("OrderPlaced", f'{{"customer": "{customer}", "amount": {amount}}}')
        self.rolled_back += fails
        say(f"  shop     order-{self.orders:<3} {'rolled back' if fails else 'committed'}")

    def take_payment(self) -> None:
        """The last order is paid: an update and its event."""
        with self.lab.writer.transaction() as conn:
            conn.execute("UPDATE orders SET status = 'paid' WHERE id = %s", [self.orders])
            self._event("OrderPaid", '{"method": "card"}')
        say(f"  shop     order-{self.orders:<3} paid")

    def _event(self, event: str, payload: str) -> None:
        self.lab.writer.insert(f"order-{self.orders}", payload, kind="order", event=event)


class Demo:
    """The play and its screen."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.shop = Shop(lab)
        self.printed = 0
        relay = set_up(lab)
        relay.start()
        lab.wait_streaming(relay)

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
        missing = self.lab.checker.missing()
        self.show_arrivals()
        return not missing

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

    def play(self) -> bool:
        """The whole play; was everything as promised?"""
        say("\nThe shop opens. Each order and its event are one transaction:")
        self.sell(8)
        wait_until(self.all_arrived, 120, lambda: f"all events arrive\n{self.lab.checker.report()}")
        self.outage()
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
        lab.topic("order", partitions=3)
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
