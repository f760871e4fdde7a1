"""Count instructions per event of the relay's own path, and hold them to a committed budget.

    path.py PROGRAM [--budget FILE]    fails when PROGRAM (path.c) takes more than FILE allows
    path.py PROGRAM --write            FILE becomes what it takes now, and a little headroom

Instructions are counted by valgrind's callgrind. With the same compiler they are the same in each
run and on each machine, however busy, as long as libc chooses the same functions: PLAIN_CPU.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Iterable

BUDGET = Path(__file__).parent / "budget"
COUNTED = "walk"  # the function of path.c
MACHINE = "x86_64"  # the budget's
HEADROOM = 1.02
SHOWN = 25
SKIPPED = 77  # ctest knows it by SKIP_RETURN_CODE
PLAIN_CPU = "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3,-SSE4_1,-SSE4_2,-BMI2"
HEAD = """\
# Instructions per event that the relay's own path may take (`limit`), and how many each function took
# when that was written: `./dev test perf` fails above the limit and shows which functions grew.
# Measured with {compiler}. A change that is worth its price, or one that makes
# the path shorter, writes this file anew:
#   /usr/bin/python3 tests/perf/path.py build/asan/tests/perf/perf_path --write
"""

_NAME = re.compile(r"fn=\((\d+)\)(?: (.*))?")


def self_counts(profile: Iterable[str]) -> Counter[str]:
    """Instructions of each function, without those it calls, from callgrind's output.

    https://valgrind.org/docs/manual/cl-format.html; code that is inlined counts for where it is.
    """
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    function = ""
    of_call = False  # the next line is what a call cost
    for line in profile:
        name = _NAME.match(line)
        if name:
            number, text = name.groups()
            function = names.setdefault(number, text)
        elif line.startswith("cfn="):
            name = _NAME.match(line, 1)
            assert name
            names.setdefault(name[1], name[2])
        elif line.startswith("calls="):
            of_call = True
        elif line[:1] in "0123456789+-*":
            if not of_call:
                counts[function] += int(line.split()[1])
            of_call = False
    return counts


def count(program: Path) -> dict[str, int]:
    """Instructions per event of each function in the path."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind.out"
        command = [
            "valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={out}",
            f"--toggle-collect={COUNTED}", str(program),
        ]  # fmt: skip
        environment = {"PATH": "/usr/bin:/bin", "GLIBC_TUNABLES": PLAIN_CPU}
        try:
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        except FileNotFoundError:
            sys.exit("perf: no valgrind; ./dev deps installs it")
        except subprocess.CalledProcessError as error:
            sys.exit(f"perf: {program.name} under valgrind: exit status {error.returncode}")
        with out.open(encoding="utf-8") as profile:
            counts = self_counts(profile)
    events = int(run.stdout or 0)
    if events == 0 or sum(counts.values()) < events:
        sys.exit(f"perf: {program.name} told of {events} events, and of {sum(counts.values())} instructions")
    return {name: round(n / events) for name, n in counts.items() if round(n / events) > 0}


def read_budget(path: Path) -> dict[str, int]:
    """Instructions of each function, and those allowed altogether as `limit`."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    return {name: int(number) for number, name in lines}


def write_budget(path: Path, counts: dict[str, int]) -> None:
    compiler = subprocess.run(["cc", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [f"{round(sum(counts.values()) * HEADROOM)} limit"]
    lines += [f"{n} {name}" for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    text = HEAD.format(compiler=compiler.splitlines()[0]) + "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")


def table(counts: dict[str, int], before: dict[str, int]) -> str:
    """Those that grew or shrank most come first, then those that take most."""
    names = sorted(
        counts.keys() | before.keys() - {"limit"},
        key=lambda name: (-abs(counts.get(name, 0) - before.get(name, 0)), -counts.get(name, 0), name),
    )
    lines = ["    now  before    more  function"]
    for name in names[:SHOWN]:
        now, then = counts.get(name, 0), before.get(name, 0)
        lines.append(f"{now:7} {then:7} {now - then:+7}  {name}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="path.py")
    parser.add_argument("program", type=Path)
    parser.add_argument("--budget", type=Path, default=BUDGET)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if platform.machine() != MACHINE:
        print(f"perf: the budget is {MACHINE}'s")
        return SKIPPED
    counts = count(arguments.program)
    if arguments.write:
        write_budget(arguments.budget, counts)
        return 0
    before = read_budget(arguments.budget)
    total, limit = sum(counts.values()), before["limit"]
    print(f"{total} instructions an event, of {limit} allowed")
    if total <= limit:
        return 0
    print(table(counts, before))
    print(f"perf: over the budget; {arguments.budget} says how it is written anew, if this is worth it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
