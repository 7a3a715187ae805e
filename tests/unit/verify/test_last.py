"""The last verdict, and what may be built on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.verify.last import Increment, Proved, increment, load, save
from remedy.verify.verdict import Culprit, DeadLink, HostVerdict, Rung, Verdict
from tests.unit.report.pages.samples import proof_page

OLD = {f"gpu{n:02}": f"mark-{n}" for n in range(8)}


def proved(**more: object) -> Verdict:
    return Verdict(passed=True, reason="all is well", fingerprints=OLD).model_copy(update=more)


def test_a_verdict_comes_back_as_it_was(tmp_path: Path) -> None:
    verdict = proved(rungs=(Rung(name="facts", passed=True),))
    save(tmp_path / "new", verdict)
    assert load(tmp_path / "new") == verdict
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["verdict.json"]


@pytest.mark.parametrize("text", [None, "", "{}", '{"passed": true, "unheard": 1}'])
def test_what_cannot_be_read_is_no_verdict(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "verdict.json").write_text(text)
    assert isinstance(load(tmp_path), str)


@given(st.sets(st.sampled_from(sorted(OLD)), min_size=1, max_size=4))
def test_each_new_host_has_a_proved_partner_of_its_own(changed: set[str]) -> None:
    found = increment(proved(), {**OLD, **dict.fromkeys(changed, "another")}, Proved("torch"))
    assert isinstance(found, Increment)
    assert {new for new, _ in found.pairs} == changed
    partners = [old for _, old in found.pairs]
    assert len(set(partners)) == len(changed)
    assert not changed & set(partners)


def test_a_host_that_is_gone_needs_no_test_of_its_own() -> None:
    now = {host: mark for host, mark in OLD.items() if host != "gpu03"} | {"gpu09": "new"}
    found = increment(proved(), now, Proved("torch"))
    assert isinstance(found, Increment)
    assert [new for new, _ in found.pairs] == ["gpu09"]


@pytest.mark.parametrize(
    ("last", "now", "why"),
    [
        ("nothing was verified here before", OLD, "nothing was verified"),
        (proved(passed=False), OLD, "failed"),
        (proved(), OLD, "no host has changed since the last verification"),
        (proved(launcher="slurm", job="7"), OLD, "of ranks that slurm started"),
        (proved(), dict.fromkeys(OLD, "x"), "8 of 8 hosts have changed"),
    ],
)
def test_where_it_cannot_be_built_on_it_says_why(
    last: Verdict | str, now: dict[str, str], why: str
) -> None:
    found = increment(last, now, Proved("torch"))
    assert isinstance(found, str)
    assert why in found


def test_the_page_is_self_contained_and_escapes_what_hosts_said() -> None:
    verdict = Verdict(
        passed=False,
        reason="<script>alert(1)</script>",
        outcomes=tuple(HostVerdict(host=h, outcome="fail", reason="<b>") for h in OLD),
        culprits=(Culprit(name="gpu01 -> gpu02", hosts=("gpu01", "gpu02"), reason="<i>"),),
        dead_links=(
            DeadLink(source="gpu01", target="gpu02", port=29500, outcome="dropped", detail="<u>"),
        ),
    )
    text = proof_page(verdict)
    assert "not proved" in text
    for raw in ("<script>", "<b>", "<i>", "<u>", "http://", "https://", "src="):
        assert raw not in text
    squares = re.findall(r'<td class="(\w+)"(?: title="[^"]*")?>[?D]</td>', text)
    assert (squares.count("worst"), squares.count("blank")) == (1, 8 * 7 - 1)


def test_a_cause_is_not_told_twice() -> None:
    way = Culprit(name="a -> b", hosts=("a", "b"), reason="a -> b port 1: refused")
    host = Culprit(name="a", hosts=("a",), reason="a: no answer from the other host")
    other = Culprit(name="a, b", hosts=("a", "b"), reason="2 hosts call themselves 'x'")
    reasons = [one.why for one in (way, host, other)]
    assert reasons == ["port 1: refused", "no answer from the other host", other.reason]
