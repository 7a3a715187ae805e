"""Who proves a wave, what is suspected where that fails, and what is shown and recorded of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from remedy.audit.agreement import Agreement
from remedy.audit.journal import JournalRecord
from remedy.audit.story import stories
from remedy.diagnose.diagnosis import Diagnosis, Explanation
from remedy.inventory import Inventory
from remedy.plan import Change, CommandAction, Plan, section_models
from remedy.probe import HostState, Network
from remedy.report.audit import render_run
from remedy.report.records import story_body
from remedy.runs import apply, wave
from remedy.runs.cut import cut_since, cut_words, mtus_of
from remedy.runs.outcome import HostOutcome, HostStatus
from remedy.runs.partners import Ground, with_pair
from remedy.runs.probe import ProbeResult
from remedy.runs.proof import Proof
from remedy.runs.session import Session
from remedy.runs.suspects import suspects
from remedy.runs.wave import WaveProof
from remedy.spec import load_spec
from remedy.transport.connections import Transport
from remedy.verify.verdict import Culprit, NarrowLink, Verdict
from tests.unit.build import fleet, host_state, record

HOSTS = tuple(f"gpu{number:02d}" for number in range(1, 9))
ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")


def ground(
    held: Sequence[str] = (), planned: Sequence[str] = HOSTS, once: Sequence[str] = ()
) -> Ground:
    return Ground(tuple(held), frozenset([*once, *held]), frozenset(planned))


@pytest.mark.parametrize(
    ("wave", "partners", "known", "proved_now"),
    [
        # nobody was ever proved
        (HOSTS[:1], (), ground(), ()),
        (HOSTS[2:4], ("gpu02", "gpu01"), ground(), ("gpu01", "gpu02")),
        # a fleet whose proof holds: as many partners as the wave has hosts, from the middle of the rest
        (HOSTS[:1], ("gpu05",), ground(HOSTS), ()),
        (HOSTS[:2], ("gpu06", "gpu07"), ground(HOSTS), ()),
        # a host that changed since its proof was proved with the others once
        (HOSTS[:1], ("gpu03",), ground(HOSTS[1:4], once=HOSTS), ()),
        # of a new host only those are partners that this run changed, or does not change
        (("new",), (), ground(HOSTS), ()),
        (("new",), ("gpu08",), ground(HOSTS, planned=(*HOSTS[:7], "new")), ()),
        (("new",), ("gpu01",), ground(HOSTS), ("gpu01",)),
    ],
)
def test_who_proves_a_wave(
    wave: Sequence[str], partners: tuple[str, ...], known: Ground, proved_now: Sequence[str]
) -> None:
    assert known.partners(wave, proved_now) == partners


def test_a_host_that_was_begun_and_not_proved_is_no_partner() -> None:
    known = ground(HOSTS[:4])
    assert known.partners(HOSTS[:2], (), HOSTS[2:3]) == ("gpu04",)
    assert known.partners(HOSTS[:2], HOSTS[2:3], HOSTS[2:3]) == ("gpu04", "gpu03")


@given(
    st.lists(st.sampled_from(HOSTS), unique=True, min_size=1),
    st.lists(st.sampled_from(HOSTS), unique=True),
    st.lists(st.sampled_from(HOSTS), unique=True),
)
def test_partners_are_others_and_not_more_than_the_wave(
    wave: list[str], held: list[str], now: list[str]
) -> None:
    partners = ground(held).partners(wave, now)
    assert not set(partners) & set(wave)
    assert set(partners) <= {*held, *now}
    assert len(partners) == len(set(partners)) <= len(wave)


@pytest.mark.parametrize(
    ("sizes", "known", "expected"),
    [
        ([("a",), ("b", "c")], ground(), (("a", "b"), ("c",))),
        ([("a",), ("b",)], ground(), (("a", "b"),)),
        ([("a",), ("b",), ("c",)], ground(), (("a", "b"), ("c",))),
        ([("a", "b"), ("c",)], ground(), (("a", "b"), ("c",))),
        ([("gpu01",), ("gpu02",)], ground(HOSTS), (("gpu01",), ("gpu02",))),
        ([("a",)], ground(), (("a",),)),
        ([], ground(), ()),
    ],
)
def test_the_first_wave_has_two_hosts_where_nobody_else_can_prove_it(
    sizes: list[tuple[str, ...]], known: Ground, expected: tuple[tuple[str, ...], ...]
) -> None:
    assert with_pair(sizes, known) == expected


def test_a_wave_of_a_resumed_run_that_is_proved_before_is_a_partner_of_the_first() -> None:
    sizes = [("c",), ("d",)]
    assert with_pair(sizes, ground(), ["a", "b"]) == (("c",), ("d",))
    assert with_pair(sizes, ground()) == (("c", "d"),)


def change(
    host: str, number: int, label: str = "ports-blocked", *, guarded: bool = False
) -> Change:
    made: Change = record(
        Change, id=f"0{number}-x", host=host, title="t", label=label, guarded=guarded, action=ACTION
    )
    return made


def verdict(*accused: str) -> Verdict:
    culprits = tuple(Culprit(name=name, hosts=(name,), reason="silent") for name in accused)
    return Verdict(passed=False, reason="r", culprits=culprits)


def cause(label: str) -> Explanation:
    return Explanation(diagnosis=Diagnosis(label=label, confidence="likely"))


def session() -> Session:
    """Return the hosts without connections: nothing is asked of them."""
    return Session(
        Inventory(Path("inventory.py"), ()),
        load_spec(None, section_models()),
        cast(Transport, None),
        HOSTS,
    )


@pytest.mark.parametrize(
    ("accused", "label", "first"),
    [
        ((), "", "01-x of a"),  # in the order in which they were made
        (("b",), "", "02-x of b"),  # the host that the proof names
        (("b",), "mtu", "03-x of a"),  # what the cause is about comes before that
    ],
)
def test_the_first_suspect(accused: tuple[str, ...], label: str, first: str) -> None:
    made = [change("a", 1), change("b", 2), change("a", 3, "mtu")]
    ranked = suspects(made, verdict(*accused), cause(label) if label else None)
    assert f"{ranked[0].change.id} of {ranked[0].host}" == first
    assert len(ranked) == 3
    assert all(suspect.reason for suspect in ranked)


def test_a_change_that_can_cut_connections_is_suspected_before_others() -> None:
    ranked = suspects([change("a", 1), change("a", 2, guarded=True)], None, None)
    assert ranked[0].change.id == "02-x"
    assert ranked[0].record()["reason"] == "it can cut connections"


def test_a_red_wave_is_in_the_story_and_is_shown() -> None:
    proof = WaveProof(("gpu01",), ("gpu05",), None, "gpu01: no answer", passed=False)
    red = {
        "wave": 1,
        "reason": "gpu01: no answer",
        "suspects": [suspects([change("gpu01", 1)], None, None)[0].record()],
        "rollback": "r2",
        "as_before": ["gpu01"],
        "not_as_before": {},
        "proved_again": True,
    }
    body = {"run": "r1", "mode": "apply", "time": "2026-01-01"}
    (story,) = stories(
        [
            JournalRecord(0, {**body, "event": "wave", "data": proof.record(1)}),
            JournalRecord(1, {**body, "event": "red", "data": red}),
        ]
    ).values()
    assert (story.proved, story.reason) == (False, "gpu01: no answer")
    text = io.StringIO()
    Console(file=text, width=200).print(render_run(story, None, ""))
    for words in (
        "wave 1      gpu01 with gpu05: NOT proved: gpu01: no answer",
        "taken back  wave 1 by run r2",
        "as before   gpu01, byte for byte",
        "again       proved",
        "suspected   gpu01: 01-x (t)",
    ):
        assert words in text.getvalue()
    document = story_body(story, {})
    assert (document["waves"], document["red"]) == ([proof.record(1)], red)


def test_what_fails_without_the_changes_as_well_is_shown_as_that() -> None:
    red = {"wave": 1, "rollback": "r2", "as_before": ["a"], "proved_again": False, "suspects": []}
    body = {"run": "r1", "mode": "apply", "time": "2026-01-01", "event": "red", "data": red}
    (story,) = stories([JournalRecord(0, body)]).values()
    text = io.StringIO()
    Console(file=text, width=200).print(render_run(story, None, ""))
    assert "suspected   no change: the proof fails without them as well" in text.getvalue()


def test_only_what_is_wrong_now_or_what_the_cause_is_about_comes_first() -> None:
    made = [change("a", 1), change("a", 2, "mtu-mismatch")]
    (first, second) = suspects(made, None, None, ["mtu-mismatch"])
    assert first.reason == "it is about what the host lacks now, mtu-mismatch"
    assert second.reason == "it was made in this wave"


def test_a_run_is_resumed_in_the_waves_that_it_had_unless_others_are_asked_for() -> None:
    data = {"waves": 2, "prove_waves": True, "sizes": "1,100%"}
    body = {"run": "r1", "mode": "apply", "time": "2026-01-01", "event": "planned", "data": data}
    (story,) = stories([JournalRecord(0, body)]).values()
    agreement = Agreement(record(Plan), resumes="r1", sizes=story.sizes)
    for asked, expected in ((None, "1,100%"), ("2,50%", "2,50%"), ("100%", "100%")):
        resumed = session()
        # As the command line does, with options that were not given.
        resumed.spec.override("apply", waves=asked, max_failures=1)
        assert apply._sizes(resumed, agreement) == expected
        assert apply._sizes(resumed, Agreement(record(Plan))) == (asked or "100%")


def test_a_run_whose_waves_were_not_proved_says_so() -> None:
    body = {"run": "r1", "mode": "apply", "time": "2026-01-01", "event": "planned"}
    (story,) = stories(
        [JournalRecord(0, {**body, "data": {"waves": 3, "prove_waves": False}})]
    ).values()
    text = io.StringIO()
    Console(file=text, width=200).print(render_run(story, None, ""))
    assert "3 waves, without a proof of each" in text.getvalue()


def with_mtu(host: str, mtu: int) -> HostState:
    state = host_state(host, f"10.0.0.{int(host[3:])}")
    assert isinstance(state.network, Network)
    (interface,) = state.network.interfaces
    sized = interface.model_copy(update={"mtu": mtu})
    return state.model_copy(
        update={"network": state.network.model_copy(update={"interfaces": (sized,)})}
    )


@pytest.mark.parametrize(
    ("before", "now", "link", "lost"),
    [
        # gpu01 is in the wave, gpu02 its partner.
        ((1500, 1500), (9000, 1500), ("gpu01", "gpu02", 9000), True),
        ((1500, 1500), (576, 1500), ("gpu02", "gpu01", 1500), True),
        # A network of two sizes, as it was before the run.
        ((9000, 1500), (9000, 1500), ("gpu01", "gpu02", 9000), False),
        ((576, 1500), (576, 1500), ("gpu02", "gpu01", 1500), False),
        # Larger than it was, and not what is lost; a partner that somebody else has changed.
        ((1500, 1500), (9000, 1500), ("gpu02", "gpu01", 1500), False),
        ((1500, 1500), (1500, 9000), ("gpu02", "gpu01", 9000), False),
        # What an IP packet can have at most is less than the MTU of some interfaces.
        ((1500, 1500), (65536, 1500), ("gpu01", "gpu02", 65535), True),
    ],
)
def test_packets_that_are_lost_since_the_run_changed_their_size(
    before: tuple[int, int], now: tuple[int, int], link: tuple[str, str, int], lost: bool
) -> None:
    source, target, size = link
    narrow = NarrowLink(source=source, target=target, size=size)
    shown = verdict().model_copy(update={"passed": True, "narrow_links": (narrow,)})
    former, later = (
        mtus_of(dict(zip(HOSTS[:2], map(with_mtu, HOSTS[:2], sizes), strict=True)))
        for sizes in (before, now)
    )
    assert cut_since(former, later, shown, ["gpu01"]) == ((narrow,) if lost else ())
    assert cut_since({}, later, shown, ["gpu01"]) == (), "what it was is not known"
    if lost:
        assert f"packets of {size} bytes from {source} do not arrive at {target}" in cut_words(
            [narrow]
        )


def test_a_sum_that_is_right_over_packets_that_are_lost_proves_no_wave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = NarrowLink(source="gpu01", target="gpu02", size=9000)
    shown = verdict().model_copy(update={"passed": True, "narrow_links": (narrow,)})
    monkeypatch.setattr(wave, "prove", lambda *_: Proof(shown))

    def read(mtu: int) -> ProbeResult:
        return ProbeResult(fleet(with_mtu("gpu01", mtu), with_mtu("gpu02", 1500)), {})

    outcomes = {"gpu01": HostOutcome(HostStatus.CHANGED)}
    later = read(9000)
    former, same = (mtus_of(result.fleet.states) for result in (read(1500), later))
    red = wave.prove_wave(session(), former, later, outcomes, ["gpu01"], ["gpu02"])
    assert (red.passed, red.lost) == (False, (narrow,))
    assert "packets of 9000 bytes from gpu01 do not arrive at gpu02" in red.verdict.reason
    assert [named.hosts for named in red.verdict.culprits] == [("gpu01", "gpu02")]
    assert wave.prove_wave(session(), same, later, outcomes, ["gpu01"], ["gpu02"]).passed


@pytest.mark.parametrize(
    ("ended", "in_proof"), [(("changed",), ("gpu01",)), (("changed", "wave"), ()), (("wave",), ())]
)
def test_a_wave_whose_proof_did_not_end_is_not_known_to_be_proved(
    ended: tuple[str, ...], in_proof: tuple[str, ...]
) -> None:
    body = {"run": "r1", "mode": "apply", "time": "2026-01-01"}
    data = {
        "planned": {"waves": 2, "prove_waves": True},
        "changed": {"hosts": {"gpu01": {"results": [{"id": "01-x", "status": "done"}]}}},
        "wave": WaveProof(("gpu01",), ("gpu05",), None, "the sum", passed=True).record(1),
    }
    (story,) = stories(
        JournalRecord(number, {**body, "event": event, "data": data[event]})
        for number, event in enumerate(("planned", *ended))
    ).values()
    text = io.StringIO()
    Console(file=text, width=200).print(render_run(story, None, ""))
    words = "not known   gpu01: changed, and the proof of their wave did not end"
    assert (words in text.getvalue()) is bool(in_proof)
    assert story_body(story, {})["in_proof"] == in_proof


@pytest.mark.parametrize(
    ("asked", "count", "proving", "words"),
    [
        (
            True,
            1,
            True,
            "waves: all hosts were changed in one wave; the proof at the end is its proof",
        ),
        (
            True,
            1,
            False,
            "waves: all hosts were changed in one wave; it is not proved (--no-verify)",
        ),
        (True, 2, True, ""),
        (None, 1, True, ""),
    ],
)
def test_one_wave_whose_proof_was_asked_for(
    asked: bool | None, count: int, proving: bool, words: str
) -> None:
    chosen = session()
    chosen.spec.override("apply", prove_waves=asked)
    lines = apply._only_wave(chosen, [("a",)] * count, prove=proving)
    assert lines == ((words,) if words else ())
