"""Scripts of changes are written one by one, as their hosts are come to: those of all would fill the memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from remedy.apply.carrier import Carrier
from remedy.apply.job import Guard
from remedy.plan import Change, CommandAction
from remedy.transport import Output, Script
from tests.unit.plans import plan_with

HOSTS = [f"gpu{number:03}" for number in range(100)]


def rename(host: str) -> Change:
    """Return a change of one host, which has its name."""
    action = CommandAction(
        observe="uname -n", before="node", after=host, do=f"hostname {host}", undo="hostname node"
    )
    return Change(
        id="01-x", host=host, remedy="x", title="t", reason="found", label="l", action=action
    )


class OneAfterTheOther:
    """A stand-in for the connections: comes to one host after the other, as a fleet's come one by one."""

    def __init__(self) -> None:
        self.most = 0
        self._scripts: list[weakref.ref[Script]] = []

    def run(
        self,
        scripts: Mapping[str, Script],
        on_output: Callable[[Output], None],
        *,
        stage: str,  # noqa: ARG002
    ) -> dict[str, Output]:
        for host in scripts:
            script = scripts[host]
            assert host in script.text
            self._scripts.append(weakref.ref(script))
            self.most = max(self.most, sum(known() is not None for known in self._scripts))
            on_output(Output(host))
        return {}


def test_a_script_is_written_when_its_host_is_come_to() -> None:
    large = plan_with().model_copy(update={"changes": tuple(map(rename, HOSTS))})
    wire: Any = OneAfterTheOther()
    reports = Carrier(wire, Guard(), lambda _: None).make(large, "20260101T000000Z-00000000")
    assert list(reports) == HOSTS
    assert wire.most <= 2
