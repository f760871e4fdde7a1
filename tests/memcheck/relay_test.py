"""The relay under valgrind's memcheck: no invalid access, and nothing leaked at an orderly stop."""

from __future__ import annotations

from kit.journey import journey
from kit.lab import Lab


def test_the_relay_makes_no_memory_error_and_leaks_nothing(lab: Lab) -> None:
    found = lab.directory / "memcheck"
    valgrind = [
        "valgrind", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible",
        "--errors-for-leak-kinds=definite,possible", "--num-callers=30",
        "--error-exitcode=99", f"--log-file={found}",
    ]  # fmt: skip
    patient = {"postgres": {"dsn": lab.postgres.dsn(lab.db, connect_timeout=60)}}
    try:
        journey(lab, lab.relay(patient, wrapper=valgrind))
    finally:
        print(found.read_text()[-20000:])
    assert "ERROR SUMMARY: 0 errors" in found.read_text()
