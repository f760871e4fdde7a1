"""A disk that gets full; only root may make one."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator


@contextmanager
def small_disk(place: Path, owner: str, size: str) -> Iterator[None]:
    """A file system of that size at `place`."""
    options = f"size={size},mode=700,uid={owner},gid={owner}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "walrelay-test", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def enlarge(place: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], check=True)
