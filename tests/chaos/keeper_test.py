"""Which ends of a relay are somebody's doing, and which are its own."""

from __future__ import annotations

from typing import Any, cast

import pytest

from chaos.keeper import Kept
from kit.relay import Relay


class Puppet:
    """What a Kept needs of a relay; ends with `code` when told."""

    def __init__(self) -> None:
        self.running, self.code, self.starts = False, 0, 0
        self.log = cast(Any, type("Log", (), {"name": "relay.log"}))

    def start(self) -> None:
        self.running, self.starts = True, self.starts + 1

    def end(self, code: int) -> None:
        self.running, self.code = False, code

    def kill(self) -> None:
        if self.running:
            self.end(-9)

    def send_signal(self, _: int) -> None:
        pass

    def wait_exit(self) -> int:
        return self.code

    def log_text(self) -> str:
        return "the last line\n"


@pytest.fixture
def puppet() -> Puppet:
    return Puppet()


@pytest.fixture
def kept(puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setattr("chaos.keeper.RESTART_S", 0)
    relay = Kept(cast(Relay, puppet), {65})
    relay.start()
    return relay


def test_a_relay_that_was_killed_is_started_again_and_nothing_is_wrong(kept: Kept, puppet: Puppet) -> None:
    assert kept.kill()
    kept.look()
    assert puppet.starts == 2 and kept.exits == [-9] and not kept.wrong


def test_a_code_that_nobody_caused_is_wrong(kept: Kept, puppet: Puppet) -> None:
    puppet.end(70)
    kept.look()
    assert kept.wrong == ["relay.log ended with 70: ['the last line']"]


def test_a_relay_that_was_asked_to_stop_ends_with_0_and_with_nothing_else(kept: Kept, puppet: Puppet) -> None:
    for code, wrong in ((0, 0), (-11, 1)):
        kept.terminate()
        puppet.end(code)
        kept.look()
        assert len(kept.wrong) == wrong


def test_an_end_that_a_fault_of_the_round_may_cause_is_not_wrong(kept: Kept, puppet: Puppet) -> None:
    puppet.end(65)
    kept.look()
    assert not kept.wrong


def test_a_relay_that_is_held_down_stays_down(kept: Kept, puppet: Puppet) -> None:
    kept.held = True
    kept.kill()
    kept.look()
    kept.look()
    assert puppet.starts == 1 and kept.exits == [-9]
