"""A run is taken back on the machines that it changed, and not on those that stand in their place since."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from remedy.errors import RefusedError
from remedy.plan import Change, CommandAction, Plan
from remedy.plan.identities import machine_mark
from remedy.runs import rollback
from remedy.runs.probe import ProbeResult
from tests.unit.build import fleet, host_state, record

ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
HOSTS = ("gpu01", "gpu02", "gpu03", "gpu04")


def test_hosts_that_were_replaced_since_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read = fleet(
        host_state("gpu01", "10.0.0.1", machine_id="as it was"),
        host_state("gpu02", "10.0.0.2", machine_id="new"),
        host_state("gpu03", "10.0.0.3", machine_id="newer"),
        host_state("gpu04", "10.0.0.4", machine_id="whatever"),
    )
    plan = record(Plan, changes=tuple(record(Change, host=name, action=ACTION) for name in HOSTS))
    # Of the last one it is not known which machine was changed.
    machines = {"gpu01": machine_mark("as it was"), **dict.fromkeys(HOSTS[1:3], "0" * 32)}
    monkeypatch.setattr(rollback, "machines_of", lambda *_: machines)
    session: Any = None
    story: Any = SimpleNamespace(run="r1")
    strangers = rollback._strangers(session, plan, story, ProbeResult(read, {}))
    assert list(strangers) == ["gpu02", "gpu03"]
    error = strangers["gpu02"].error
    assert isinstance(error, RefusedError)
    assert error.message == (
        "gpu02: a different machine answers there now than the one that run r1 changed; only that one has "
        "the pre-images"
    )
    assert error.next_step.endswith("--limit '*!gpu[02-03]'")
