"""A C test program again and again, with other allocations of walrelay's failing each time.

    campaign.py PROGRAM

What is right: the test goes on, because the code recovered, or it fails an assertion, because
the code said that there is no memory. What is not: a signal, a finding of a sanitizer, a check
that must hold and did not, a hang, a leak of a test that did not fail.

By default the first allocation of each place in the code fails, of as many places as there is
time for, and several of them in a run where a run is long. With WALRELAY_FULL=1 there is more
time, and afterwards as much again for every allocation, one in a run.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Iterator, Sequence

SAMPLE_SECONDS = 2.0
FULL_SECONDS = 20.0
LONG_SECONDS = 0.5  # a run that takes longer has ALLOCATIONS_EACH failures
ALLOCATIONS_EACH = 8
LEAKED = 99
CRASHES = re.compile(
    r"ERROR: AddressSanitizer|runtime error:|must hold|Test failed with exception|stack smashing|double free"
)
SANITIZER = f"detect_leaks=1:exitcode={LEAKED}:handle_segv=2"


def run(program: str, limit: float, **variables: object) -> subprocess.CompletedProcess[str]:
    """One run of the program, from a directory of its own."""
    env = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    env["ASAN_OPTIONS"] = SANITIZER
    with tempfile.TemporaryDirectory() as place:
        return subprocess.run(
            [program], cwd=place, env=env, timeout=limit, stdin=subprocess.DEVNULL, text=True,
            errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip


def fault(done: subprocess.CompletedProcess[str]) -> str | None:
    """What is wrong with this end of a run; None for a right one."""
    failed = "[  FAILED  ]" in done.stdout
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    found = CRASHES.search(done.stdout)
    if found:
        return found.group()
    if done.returncode == LEAKED and not failed:  # an assertion that fails leaves much behind
        return "leaked"
    if done.returncode != 0 and not failed:
        return f"exit code {done.returncode}, but no test failed"
    return None


def fail(program: str, numbers: Sequence[int], limit: float) -> int:
    """A run in which these allocations fail; how many there were of them."""
    chosen = ",".join(map(str, numbers))
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "report")
        try:
            done = run(program, limit, WALRELAY_FAIL_ALLOC=chosen, WALRELAY_FAIL_REPORT=report)
            wrong, output = fault(done), done.stdout
        except subprocess.TimeoutExpired as late:
            wrong, output = f"not over within {limit:.0f} s", (late.stdout or b"").decode(errors="replace")
        failed = report.read_text() if report.exists() else ""
    if wrong:
        sys.exit(f"{program}: WALRELAY_FAIL_ALLOC={chosen}: {wrong}\n{output[-6000:]}\nfailed:\n{failed}")
    return sum(line.isdigit() for line in failed.splitlines())


def fail_all(program: str, limit: float) -> int:
    """Each allocation fails once, from the first one on, as long as there is time; how many."""
    end = time.monotonic() + FULL_SECONDS
    for n in itertools.count(1):
        if time.monotonic() > end or fail(program, [n], limit) == 0:
            return n - 1
    raise AssertionError("there is always a next number")


def groups(numbers: list[int], took: float) -> Iterator[list[int]]:
    """What fails together, in random order that is the same each time."""
    random.Random(1).shuffle(numbers)
    each = ALLOCATIONS_EACH if took > LONG_SECONDS else 1
    for i in range(0, len(numbers), each):
        yield numbers[i : i + each]


def fail_some(program: str, numbers: list[int], took: float, limit: float, seconds: float) -> int:
    """As many of these as there is time for; how many."""
    begin, failed = time.monotonic(), 0
    for group in groups(numbers, took):
        failed += fail(program, group, limit)
        if time.monotonic() - begin + took > seconds:
            break
    return failed


def main(program: str) -> None:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        sites = Path(place, "sites")
        done = run(program, 600, WALRELAY_FAIL_SITES=sites)
        numbers = [int(line) for line in sites.read_text().splitlines()] if sites.exists() else []
    if done.returncode != 0:
        sys.exit(f"{program} fails while all allocations succeed\n{done.stdout}")
    took = time.monotonic() - begin
    limit = 60 + 10 * took
    full = os.environ.get("WALRELAY_FULL") == "1"
    failed = fail_some(program, numbers, took, limit, FULL_SECONDS if full else SAMPLE_SECONDS)
    if full:
        failed += fail_all(program, limit)
    print(f"{failed} allocations failed; there are {len(numbers)} places that allocate")


if __name__ == "__main__":
    main(sys.argv[1])
