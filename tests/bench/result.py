"""A part's result: docs/benchmarks/PART.json. What is computed from it is in figures.py.

{"part", "commit", "dirty", "began", "seconds", "machine": {…}, "rounds", "parameters": {…},
 "runs": [{"case", "contender", "round", "figures": {…}, "check": {…}, "order_promised"}]}
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any, Mapping

import confluent_kafka

from bench.debezium import JARS
from kit.jars import KAFKA, java
from kit.postgres import Postgres
from kit.relay import ROOT, relay_binary

DIRECTORY = ROOT / "docs" / "benchmarks"
Run = Mapping[str, Any]


def is_right(run: Run) -> bool:
    """Nothing lost, nothing invented, and in order where order is promised."""
    check = run.get("check") or {}
    wrong = sum(check.get(name, 0) for name in ("lost", "unexpected", "differing"))
    if run.get("order_promised", True):
        wrong += check.get("disordered", 0)
    return wrong == 0


def write(directory: Path, part: str, result: Mapping[str, Any]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{part}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def commit() -> tuple[str, bool]:
    """The commit that is measured, and whether the tree differs from it in more than results."""
    changes = _say("git", "-C", ROOT, "status", "--porcelain", "--", ".", ":!docs/benchmarks")
    return _say("git", "-C", ROOT, "rev-parse", "HEAD"), bool(changes)


def machine() -> dict[str, Any]:
    """What a reader has to know of the place of the measurement."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    meminfo = Path("/proc/meminfo").read_text()
    return {
        "cpu": _first(r"model name\s*: (.*)", cpuinfo) or platform.machine(),
        "cores": cpuinfo.count("processor\t"),
        "memory_mb": int(_first(r"MemTotal:\s*(\d+)", meminfo) or 0) // 1024,
        "kernel": platform.release(),
        "system": _first(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text()),
        "postgresql": _first(r"(\d+\.\d+)", _say(Postgres().bin / "postgres", "--version")),
        "wal2json": _package("postgresql-15-wal2json"),
        "librdkafka": _package("librdkafka1"),
        "librdkafka_of_the_checker": confluent_kafka.libversion()[0],
        "kafka": KAFKA.version("kafka"),
        "debezium": JARS.version("debezium"),
        "java": _first(r'version "(.*?)"', _say(java(), "-version")),
        "walrelay": _say(relay_binary(), "--version"),
    }


def _package(name: str) -> str:
    return _say("dpkg-query", "-W", "-f", "${Version}", name)


def _say(*command: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip()


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found.group(1).strip() if found else ""
