"""Jars from Maven Central by a pinned pom.xml: Apache Kafka's, and those of other Java programs.

As a program (`python3 -m kit.jars`) it fetches Apache Kafka's if they are not there yet.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"
LOGGING = Path(__file__).parent / "apache-kafka" / "log4j2.properties"


@dataclass(frozen=True)
class Jars:
    """All jars that `pom` asks for, cached under build/`cache` by the contents of the pom.

    `what` says to the person who waits what is being fetched.
    """

    pom: Path
    cache: str
    what: str

    def directory(self) -> Path:
        """The directory that holds them, fetched on the first call.

        A download that is not finished is never taken for a complete one: it becomes visible by
        one rename.
        """
        directory = BUILD / self.cache / hashlib.sha256(self.pom.read_bytes()).hexdigest()[:12]
        if not directory.is_dir():
            self._fetch(directory)
        return directory

    def version(self, name: str) -> str:
        """What the pom says in <NAME.version>."""
        found = re.search(f"<{name}.version>(.*?)</", self.pom.read_text())
        if not found:
            raise LookupError(f"no <{name}.version> in {self.pom}")
        return found.group(1)

    def _fetch(self, directory: Path) -> None:
        directory.parent.mkdir(parents=True, exist_ok=True)
        partial = directory.parent / f"partial.{os.getpid()}"
        try:
            self._copy_dependencies(partial)
            partial.rename(directory)
        except OSError:
            if not directory.is_dir():  # else somebody else was faster
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _copy_dependencies(self, target: Path, tries: int = 3) -> None:
        maven = shutil.which("mvn")
        if not maven:
            raise RuntimeError("no mvn (Debian package maven): run ./dev deps")
        print(f"fetching {self.what} from Maven Central", file=sys.stderr, flush=True)
        command = [
            maven, "-q", "-B", "-f", str(self.pom), "dependency:copy-dependencies",
            f"-DoutputDirectory={target}",
        ]  # fmt: skip
        for attempt in range(1, tries + 1):
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return
        raise RuntimeError(f"mvn failed {attempt} times; its last words:\n{done.stdout[-3000:]}")


KAFKA = Jars(LOGGING.parent / "pom.xml", "kafka", "Apache Kafka (55 MB)")


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


if __name__ == "__main__":
    try:
        KAFKA.directory()
    except RuntimeError as error:
        sys.exit(f"dev: {error}")
