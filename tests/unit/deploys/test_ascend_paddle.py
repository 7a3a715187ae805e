"""Rank tables and endpoints side by side: values that are refused, and any fleet converges."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.ascend import AscendSpec
from remedy.deploys.paddle import PaddleSpec
from remedy.errors import SpecError
from remedy.plan import FindingKind, inverse, promised, section_models
from remedy.probe import File
from remedy.spec import load_spec
from tests.unit.deploys.ascend_bench import fleet_of, hccn, host, planned


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("paddle: {ports: 9000-8000}", "paddle.ports.*first port"),
        ("paddle: {ports: many}", "paddle.ports"),
        ("ascend: {base_port: 80}", "ascend.base_port"),
        ("ascend: {connect_timeout: 5}", "ascend.connect_timeout"),
        ("ascend: {node_timeout: soon}", "ascend.node_timeout"),
    ],
)
def test_bad_values_are_refused_with_their_path(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=words):
        load_spec(path, section_models())


CONTENTS = st.sampled_from([None, b"", b"address_0=127.0.0.1\n", b"address_0=192.168.7.7\n"])


@given(
    st.lists(st.tuples(st.booleans(), CONTENTS, st.sampled_from([None, b"{}"])), min_size=1, max_size=4),
    st.sampled_from([None, True, False]),
)  # fmt: skip
def test_any_fleet_converges_in_one_plan_and_undoes(
    hosts: list[tuple[bool, bytes | None, bytes | None]], asked: bool | None
) -> None:
    states = [
        host(n, hccn(n) if good else content, table=table)
        for n, (good, content, table) in enumerate(hosts, 1)
    ]
    before = fleet_of(
        *states, ascend=AscendSpec(rank_table=asked), paddle=PaddleSpec(ports="8000-8001")
    )
    for only in ("ascend", "paddle"):
        plan = planned(before, only)
        after = promised(before, plan)
        again = planned(after, only)
        assert again.changes == ()
        drifting = {f.host for f in plan.findings if f.kind is FindingKind.DRIFT}
        assert set(plan.hosts) == drifting
        changes = tuple(c for s in states for c in inverse(plan.for_host(s.host)))
        back = promised(after, plan.model_copy(update={"changes": changes}))
        for state in states:
            for path, file in state.files.items():
                old = back.states[state.host].files[path]
                assert isinstance(old, File)
                assert isinstance(file, File)
                assert (old.exists, old.content) == (file.exists, file.content)
