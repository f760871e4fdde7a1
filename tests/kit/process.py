"""Child processes that never outlive us, temporary directories and free ports."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

PR_SET_PDEATHSIG = 1
ROOMY = 2 << 30

_libc = ctypes.CDLL(None, use_errno=True)


def spawn(
    argv: Sequence[str | Path],
    log: Path,
    *,
    user: str | None = None,
    env: Mapping[str, str] | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start argv with stdout and stderr appended to `log` and nothing on stdin.

    The child has its own session, so a Ctrl-C in the terminal reaches only us, and gets
    `death_signal` from the kernel when we die, however we die. With `user` (for root only)
    it runs as that user. `env` is its whole environment; the default is ours.
    """

    def tie_to_parent() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(death_signal))

    with log.open("ab") as out:
        child: subprocess.Popen[bytes] = subprocess.Popen(
            [str(arg) for arg in argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            cwd="/",
            start_new_session=True,
            preexec_fn=tie_to_parent,
            **identity(user),
        )
    return child


def identity(user: str | None) -> dict[str, Any]:
    """The arguments for subprocess that make a child run as `user`; none for None."""
    return {"user": user, "group": user, "extra_groups": []} if user else {}


def ends(child: subprocess.Popen[bytes], sig: signal.Signals, limit: float) -> bool:
    """Send `sig` to a child that runs; is it gone within `limit` seconds?"""
    if child.poll() is None:
        child.send_signal(sig)
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            return False
    return True


def finish(child: subprocess.Popen[bytes] | None, sig: signal.Signals, limit: float) -> int | None:
    """Send `sig`, wait `limit` seconds, then SIGKILL. Return the exit status (None: no child)."""
    if child is None:
        return None
    if not ends(child, sig, limit):
        child.kill()
    return child.wait()


def children(pid: int) -> list[int]:
    """The processes that a process started itself and that still run."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def raise_on_termination() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end this program by KeyboardInterrupt: every `finally` runs.

    SIGINT too, as Python leaves it ignored when a shell started us in the background.
    """

    def stop(signum: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(signum).name)

    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, stop)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on at this moment.

    Below the ephemeral range: there neither an outgoing connection can take it while its server
    is down, nor can a client that retries connect to itself. Another server may still take it
    first, so whoever listens on it must be ready to ask again.
    """
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    highest = ephemeral - 1 if ephemeral > 12000 else 32000
    for port in random.sample(range(10000, highest), 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port on 127.0.0.1 between 10000 and {highest}")


def port_taken(log: str) -> bool:
    """Does the log of a server that did not start say that its address is in use?"""
    return "address already in use" in log.lower()


def environment_without(prefix: str) -> dict[str, str]:
    """Our environment without the variables whose names begin with `prefix`."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefix)}


def forget_libpq_environment() -> None:
    """Drop the PG* variables of the person's shell, which would change what our clients do."""
    for name in os.environ.keys() - environment_without("PG").keys():
        del os.environ[name]


def make_directory(name: str) -> Path:
    """A new temporary directory that every user may enter, with room for a server's data.

    Under $TMPDIR, /tmp or /var/tmp: the first that all users may enter and that has 2 GB free,
    else the one with the most room.
    """
    candidates = [os.environ.get("TMPDIR"), "/tmp", "/var/tmp"]
    places = [Path(p) for p in candidates if p and os.access(p, os.W_OK) and _open_to_all(Path(p))]
    if not places:
        raise RuntimeError("none of $TMPDIR, /tmp and /var/tmp is writable and open to all users")
    roomy = [p for p in places if shutil.disk_usage(p).free >= ROOMY]
    place = roomy[0] if roomy else max(places, key=lambda p: shutil.disk_usage(p).free)
    directory = Path(tempfile.mkdtemp(prefix=f"walrelay-{name}-", dir=place))
    directory.chmod(0o755)
    return directory


def remove_directory(directory: Path) -> None:
    """Remove a directory of make_directory(), also when parts of it are gone already."""
    shutil.rmtree(directory, ignore_errors=True)


def _open_to_all(path: Path) -> bool:
    return all(p.stat().st_mode & 0o001 for p in [path, *path.resolve().parents])


def rss_kb(pid: int) -> int:
    """Resident memory of a process, in kB."""
    return _status_field(pid, "VmRSS")


def peak_rss_kb(pid: int) -> int:
    """The most resident memory that a process ever had, in kB."""
    return _status_field(pid, "VmHWM")


def thread_count(pid: int) -> int:
    """Number of threads of a process."""
    return _status_field(pid, "Threads")


def thread_names(pid: int) -> list[str]:
    """Names of its threads."""
    return sorted(name.read_text().strip() for name in Path(f"/proc/{pid}/task").glob("*/comm"))


def fd_count(pid: int) -> int:
    """Number of open file descriptors of a process."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used so far."""
    fields = _stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def exists(pid: int) -> bool:
    """Is there such a process?"""
    return Path("/proc", str(pid)).exists()


def describe(pid: int) -> str:
    """A line about a process: its id, state, where it waits in the kernel, and title."""
    try:
        state = _stat_fields(pid)[0]
        waits = Path(f"/proc/{pid}/wchan").read_text()
        title = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return f"{pid} gone"
    return f"{pid} {state} {waits} {title}"


def _stat_fields(pid: int) -> list[str]:
    """What /proc/PID/stat says behind the name: the state and what follows."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _status_field(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise LookupError(f"no {name} in /proc/{pid}/status")
