"""Limits of any host: one plan makes them right, and its undo brings back what was there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.limits import PAM, LimitsSpec
from remedy.deploys.logind import LogindSpec
from remedy.edit.limits import UNLIMITED
from remedy.plan import FindingKind, inverse, make_plan, promised
from remedy.probe import File
from tests.unit.build import WHEN, fleet, with_section
from tests.unit.deploys.limits_bench import MAIN, SITE, host

LINES = st.lists(
    st.sampled_from([b"* - memlock 64\n", b"root - memlock unlimited\n", b"* hard nofile 512\n",
                     b"\xff\n", b"* - memlock unlimited\n", b"root - nofile 200000\n"]),
    max_size=4,
).map(b"".join)  # fmt: skip

SPECS = st.builds(
    LimitsSpec,
    memlock=st.sampled_from([None, UNLIMITED, 1 << 30]),
    nofile=st.sampled_from([None, 4096, 131072]),
)


@given(st.fixed_dictionaries({}, optional={MAIN: LINES, SITE: LINES, PAM: LINES}), SPECS,
       st.booleans(), st.booleans(), st.booleans())  # fmt: skip
def test_any_host_converges_in_one_plan_and_undoes(
    files: dict[str, bytes], spec: LimitsSpec, rdma: bool, gpu: bool, ipc: bool
) -> None:
    state = host(files, rdma=rdma, gpu=gpu, memlock=65536, nofile=512)
    both = with_section("limits", spec)
    both.sections["logind"] = LogindSpec(remove_ipc=False if ipc else None)
    before = fleet(state, spec=both)
    for name in ("limits", "logind"):
        plan = make_plan(before, WHEN, only=name)
        after = promised(before, plan)
        again = make_plan(after, WHEN, only=name)
        assert again.changes == ()
        assert not again.blocked("gpu01")
        assert not [f for f in again.findings if f.kind is FindingKind.DRIFT]
        assert bool(plan.changes) is any(f.kind is FindingKind.DRIFT for f in plan.findings)
        undo = plan.model_copy(update={"changes": inverse(plan.changes)})
        back = promised(after, undo).states["gpu01"]
        for path, file in state.files.items():
            old = back.files[path]
            assert isinstance(old, File)
            assert isinstance(file, File)
            assert (old.exists, old.content) == (file.exists, file.content)
