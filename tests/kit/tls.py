"""A certificate authority of our own, by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

KEY = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]


def make_authority(folder: Path, name: str) -> Path:
    """Make NAME.crt and NAME.key, an authority that signs itself; return the certificate."""
    _openssl("req", "-x509", *KEY, "-subj", f"/CN={name}", *_files(folder, name))
    return folder / f"{name}.crt"


def make_certificate(folder: Path, name: str, authority: Path, host: str = "IP:127.0.0.1") -> Path:
    """Make NAME.crt and NAME.key for `host`, signed by `authority`; return the certificate."""
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={host}\n")
    _openssl("req", *KEY, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", request)
    _openssl(
        "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority.with_suffix(".key"),
        "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", folder / f"{name}.crt",
    )  # fmt: skip
    (folder / f"{name}.key").chmod(0o600)
    return folder / f"{name}.crt"


def _files(folder: Path, name: str) -> list[str | Path]:
    return ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]


def _openssl(*args: str | Path) -> None:
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)
