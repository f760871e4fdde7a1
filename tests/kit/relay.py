"""walrelay as a child process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Mapping, Sequence

from kit import process
from kit.wait import wait_until

Config = Mapping[str, Mapping[str, str]]
ROOT = Path(__file__).resolve().parents[2]


def relay_binary() -> Path:
    """The walrelay under test: $WALRELAY_BIN, else build/release/walrelay."""
    binary = Path(os.environ.get("WALRELAY_BIN", ROOT / "build" / "release" / "walrelay")).absolute()
    if not binary.exists():
        raise RuntimeError(f"no {binary}: run ./dev build")
    return binary


class Relay:
    """One walrelay with its configuration file and its log, both in `directory`.

    `config` is {section: {key: value}}; names and values are written as they are. `env` is
    added to the environment, in which no other WALRELAY_* variable is left, as walrelay takes
    these for settings; `wrapper` stands before the command (["prlimit", "--nofile=32"]).
    The log collects the output of all runs of this object.
    """

    def __init__(
        self,
        directory: Path,
        config: Config,
        *,
        name: str = "walrelay",
        env: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        self.config_file = directory / f"{name}.conf"
        self.log = directory / f"{name}.log"
        self.env = {**process.environment_without("WALRELAY_"), **(env or {})}
        self.wrapper = list(wrapper)
        self._child: subprocess.Popen[bytes] | None = None
        self.write_config(config)
        self.log.touch()

    def __enter__(self) -> "Relay":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def write_config(self, config: Config) -> None:
        """Replace the configuration file; readable by its owner only, as it holds a password."""
        self.config_file.touch(mode=0o600)
        sections = [
            f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
            for section, keys in config.items()
        ]
        self.config_file.write_text("\n".join(sections))

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Start `walrelay run`. Does not wait for anything."""
        command = [*self.wrapper, str(relay_binary()), "run", "-c", str(self.config_file)]
        self._child = process.spawn(command, self.log, env=self.env)

    def stop(self, limit: float = 20) -> int:
        """SIGTERM; return the exit code (-9 when it took longer than `limit` seconds)."""
        self.thaw()
        code = process.finish(self._child, signal.SIGTERM, limit)
        assert code is not None, "the relay was never started"
        return code

    def wait_exit(self, limit: float = 20) -> int:
        """Wait until the relay ends by itself; return its exit code."""
        assert self._child is not None
        wait_until(lambda: not self.running, limit, lambda: f"walrelay has ended\n{self.log_text()[-2000:]}")
        return self._child.wait()

    def kill(self) -> None:
        """SIGKILL. Harmless when it is not running."""
        process.finish(self._child, signal.SIGKILL, 10)

    def freeze(self) -> None:
        """Stop the process in its tracks; its connections stay."""
        self.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Undo freeze(). Harmless when not frozen."""
        self.send_signal(signal.SIGCONT)

    def send_signal(self, sig: signal.Signals) -> None:
        """Send a signal if the relay runs."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(sig)

    def call(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run another subcommand with the same configuration: call("check")."""
        return subprocess.run(
            [str(relay_binary()), *args, "-c", str(self.config_file)], cwd="/",
            env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    # ----------------------------------------------------------- observation

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def rss_kb(self) -> int:
        """Resident memory now, in kB."""
        return process.rss_kb(self.pid)

    def peak_rss_kb(self) -> int:
        """The most resident memory so far, in kB."""
        return process.peak_rss_kb(self.pid)

    def cpu_seconds(self) -> float:
        """CPU time used so far."""
        return process.cpu_seconds(self.pid)

    def fds(self) -> int:
        """Open file descriptors."""
        return process.fd_count(self.pid)

    def threads(self) -> int:
        """Threads."""
        return process.thread_count(self.pid)

    def log_text(self, after: int = 0) -> str:
        """What the relay has written to stderr and stdout, from position `after` on."""
        return self.log.read_bytes()[after:].decode(errors="replace")

    def warnings(self) -> list[str]:
        """Its warnings and errors so far; that a lab has no walrelay_state is not one."""
        lines = re.findall(r"^\S+ (?:warning|error) .*$", self.log_text(), re.MULTILINE)
        return [line for line in lines if "walrelay_state does not exist" not in line]

    def log_mark(self) -> int:
        """The end of the log now, for `after`."""
        return self.log.stat().st_size

    def wait_for_log(self, pattern: str, timeout: float = 15, after: int = 0) -> "re.Match[str]":
        """Wait for a line that matches the regular expression; return the match."""
        return wait_until(
            lambda: re.search(pattern, self.log_text(after), re.MULTILINE),
            timeout,
            lambda: f"the relay's log has a line like {pattern!r}; it has\n{self.log_text(after)[-3000:]}",
        )
