"""The program as people start it: what it prints, where, and its exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Mapping

import pytest

from kit import process
from kit.relay import relay_binary

SMALLEST = """[postgres]
dsn = host=db password=hunter2
[kafka]
bootstrap.servers = k:9092
sasl.password = hunter2
[table outbox_events]
"""


def walrelay(
    directory: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [relay_binary(), *arguments],
        cwd=directory,
        env={**process.environment_without("WALRELAY_"), **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def assert_fails(result: subprocess.CompletedProcess[str], code: int, text: str) -> None:
    assert result.returncode == code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n")
    assert f" error {text}" in result.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "walrelay.conf").write_text(SMALLEST)
    return tmp_path


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "--help"], ["config", "--help"], ["dead-letters", "-h"]])
def test_help_is_printed_and_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    result = walrelay(tmp_path, *arguments)
    assert result.returncode == 0
    assert "Usage: walrelay " in result.stdout
    assert result.stderr == ""


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert walrelay(tmp_path, "--version").stdout.startswith("walrelay 0.")


def test_a_wrong_command_line_ends_with_64_and_the_nearest_name(tmp_path: Path) -> None:
    assert_fails(walrelay(tmp_path), 64, "a command is missing")
    assert_fails(walrelay(tmp_path, "chekc"), 64, "unknown command chekc, the nearest valid one is check")
    assert_fails(walrelay(tmp_path, "config", "--confg=x"), 64, "unknown option --confg")
    assert_fails(walrelay(tmp_path, "config", "-c"), 64, "option -c needs a value")
    assert_fails(walrelay(tmp_path, "dead-letters", "shw"), 64, "dead-letters does not know shw, the nearest")


def test_a_wrong_configuration_ends_with_78_and_file_and_line(place: Path) -> None:
    (place / "walrelay.conf").write_text(SMALLEST + "[relay]\nmemry = 1MB\n")
    assert_fails(walrelay(place, "config"), 78, "walrelay.conf:8: unknown key memry in [relay]")
    assert_fails(walrelay(place, "config", "-c", "no.conf"), 78, "cannot open no.conf: No such file")
    assert_fails(walrelay(place, "config", "-c", "."), 78, "cannot read .: Is a directory")


def test_the_configuration_is_found_in_three_places(place: Path) -> None:
    (place / "a.conf").write_text(SMALLEST + "[relay]\nmemory = 17MB\n")
    (place / "b.conf").write_text(SMALLEST + "[relay]\nmemory = 18MB\n")
    by_variable = {"WALRELAY_CONFIG": "a.conf"}
    assert "memory = 4MB" in walrelay(place, "config").stdout
    assert "memory = 17MB" in walrelay(place, "config", env=by_variable).stdout
    assert "memory = 18MB" in walrelay(place, "config", "-c", "b.conf", env=by_variable).stdout


def test_the_effective_settings_are_a_configuration_themselves(place: Path) -> None:
    first = walrelay(place, "config", env={"WALRELAY_RELAY_MEMORY": "20MB"})
    assert first.returncode == 0
    assert "# WALRELAY_RELAY_MEMORY\nmemory = 20MB\n" in first.stdout
    assert "hunter2" not in first.stdout
    (place / "walrelay.conf").write_text(first.stdout)
    again = walrelay(place, "config")
    assert [line for line in again.stdout.splitlines() if not line.startswith("#")] == [
        line for line in first.stdout.splitlines() if not line.startswith("#")
    ]


def test_output_that_cannot_be_written_is_an_error(place: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = subprocess.run(
            [relay_binary(), "config"],
            cwd=place,
            env=process.environment_without("WALRELAY_"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert result.returncode == 70
    assert "cannot write to standard output" in result.stderr


@pytest.mark.parametrize("arguments", [["check"], ["setup", "--apply"], ["dead-letters", "list"]])
def test_a_server_that_is_away_ends_a_command_with_70(place: Path, arguments: list[str]) -> None:
    result = walrelay(place, *arguments, env={"WALRELAY_POSTGRES_DSN": "host=127.0.0.1 port=1 password=hunter2"})
    assert result.returncode == 70
    assert "Connection refused" in result.stderr
    assert "hunter2" not in result.stdout + result.stderr
