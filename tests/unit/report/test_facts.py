"""What the probe read, as plain values."""

from __future__ import annotations

import json

from remedy.probe import Resolved
from remedy.probe.resolved import Answers
from remedy.report.facts import host_facts
from remedy.values import Unknown
from tests.unit.build import host_state


def test_names_that_many_hosts_answer_alike_are_plain_values_too() -> None:
    peers = Resolved(Answers(gpu01=("10.0.0.1",), gpu02=("10.0.0.2",)), {"gpu02": ("127.0.1.1",)})
    state = host_state("gpu01", "10.0.0.1")
    assert not isinstance(state.names, Unknown)
    names = state.names.model_copy(update={"peers": peers})
    state = state.model_copy(update={"names": names})
    facts = json.loads(json.dumps(host_facts(state)))
    assert facts["names"]["peers"] == {"gpu01": ["10.0.0.1"], "gpu02": ["127.0.1.1"]}
