"""What can go wrong: one class for each kind of fault, in files by what they strike.

A campaign takes all classes that are listed in KINDS.
"""

from __future__ import annotations

from chaos.faults.base import Fault
from chaos.faults import host, kafka, letters, network, postgres, relay, topics

KINDS: list[type[Fault]] = [
    kind for module in (relay, postgres, kafka, network, topics, host, letters) for kind in module.FAULTS
]


def by_name(name: str) -> type[Fault]:
    """The class of that name; KeyError when there is none."""
    return {kind.name: kind for kind in KINDS}[name]
