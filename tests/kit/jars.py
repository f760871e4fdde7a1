"""Apache Kafka's jars, from Maven Central by the pinned apache-kafka/pom.xml.

As a program (`python3 -m kit.jars`) it fetches them if they are not there yet.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

POM = Path(__file__).parent / "apache-kafka" / "pom.xml"
CACHE = Path(__file__).resolve().parents[2] / "build" / "kafka"


def kafka_jars() -> Path:
    """The directory with all jars of apache-kafka/pom.xml, fetched on the first call.

    Cached under build/kafka by the contents of the pom. A download that is not finished is
    never taken for a complete one: it becomes visible by one rename.
    """
    directory = CACHE / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    if not directory.is_dir():
        _fetch(directory)
    return directory


def java() -> str:
    """The Java to run: of $JAVA_HOME, else the system's, else the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    for candidate in ([f"{home}/bin/java"] if home else []) + ["/usr/bin/java"]:
        if os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which("java")
    if not found:
        raise RuntimeError("no java: run ./dev deps")
    return found


def _fetch(directory: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    partial = CACHE / f"partial.{os.getpid()}"
    try:
        _copy_dependencies(partial)
        partial.rename(directory)
    except OSError:
        if not directory.is_dir():  # else somebody else was faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy_dependencies(target: Path, tries: int = 3) -> None:
    maven = shutil.which("mvn")
    if not maven:
        raise RuntimeError("no mvn (Debian package maven): run ./dev deps")
    print("fetching Apache Kafka from Maven Central (55 MB)", file=sys.stderr, flush=True)
    command = [
        maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={target}",
    ]  # fmt: skip
    for attempt in range(1, tries + 1):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return
    raise RuntimeError(f"mvn failed {attempt} times; its last words:\n{done.stdout[-3000:]}")


if __name__ == "__main__":
    try:
        kafka_jars()
    except RuntimeError as error:
        sys.exit(f"dev: {error}")
