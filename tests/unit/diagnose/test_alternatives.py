"""What is offered beside an answer that is not certain, and what a failure can be by when it came."""

from __future__ import annotations

import pytest

from benchmarks.diagnosing.accuracy import Row, Table
from remedy.diagnose.catalogue import CauseWeight, Role
from remedy.diagnose.diagnosis import CERTAIN, UNKNOWN, Candidate, Diagnosis, Quote, sure
from remedy.diagnose.judgement.alternatives import with_alternatives
from remedy.diagnose.judgement.phase import in_phase
from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.phrases.topics import causes_about
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.diagnose.scanner.steps import Step
from remedy.plan.registry import all_causes


def unknown(*lines: str) -> Diagnosis:
    diagnosis = diagnose_lines({"log": lines})
    assert diagnosis.label == UNKNOWN
    return diagnosis


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("fatal: the verbs layer gave up on its QP", "ib-misconfig"),
        ("error: the tracker cannot use this interface", "wrong-interface"),
        ("fatal: expected 4 workers, has 3", "rank-mismatch"),
        ("error: the daemon that ssh was to start is not there", "ssh-launch-failure"),
        ("fatal: peer access between cards was turned down", "p2p-acs-iommu"),
        ("error: the checkpoint directory failed", "storage-fault"),
    ],
)
def test_three_causes_are_offered_beside_unknown_by_what_the_log_is_about(
    text: str, first: str
) -> None:
    causes = [candidate.label for candidate in unknown("begin", text).candidates]
    assert causes[0] == first
    assert len(set(causes)) == 3
    assert set(causes) <= {*all_causes(), "application-error"}


def test_nothing_is_offered_where_a_log_says_nothing() -> None:
    assert not unknown("begin", "end").candidates
    assert not diagnose_lines({"log": []}).candidates
    assert list(causes_about("")) == []


def test_neighbours_that_the_text_is_about_come_first() -> None:
    line = Quote(file="log", line=1, text="ucx chose this transport")
    lone = Candidate(label="wrong-interface", score=0.6, reason="", evidence=(line,))
    diagnosis = Diagnosis(label=lone.label, lead=line, candidates=(lone,), **sure(0.6))
    offered = with_alternatives(diagnosis).candidates
    assert [c.label for c in offered] == ["wrong-interface", "mpi-nic-mismatch", "firewall-ports"]
    settled = diagnosis.model_copy(update=sure(CERTAIN))
    assert with_alternatives(settled) == settled


def test_an_exception_that_decides_nothing_is_a_candidate() -> None:
    offered = unknown("begin", "RingNetworkError: the ring is broken")
    assert "application-error" in [candidate.label for candidate in offered.candidates]


def event(line: int, weight: float) -> Event:
    causes = (
        CauseWeight(label="firewall-ports", weight=weight),
        CauseWeight(label="peer-died-timeout", weight=0.6),
    )
    return Event("refused", Role.CAUSE, "log", line, "refused", None, "", None, causes=causes)


def scan(*steps: int) -> LogScan:
    made = tuple(Step(line, None, None) for line in steps)
    return LogScan("log", [], "", 9, 100, "", steps=made)


def test_ranks_that_made_steps_had_met_before() -> None:
    def first(line: int, weight: float, *steps: int) -> str:
        (judged,) = in_phase([event(line, weight)], [scan(*steps)])
        return max(judged.causes, key=lambda cause: cause.weight).label

    assert first(8, 0.7, 2, 4, 6) == "peer-died-timeout"
    assert first(1, 0.7, 2, 4, 6) == "firewall-ports"  # steps that came later
    assert first(8, 0.7, 2) == "firewall-ports"  # one number is no work
    assert first(8, 0.7) == "firewall-ports"
    assert first(8, CERTAIN, 2, 4, 6) == "firewall-ports"


def test_first_answer_and_first_three_are_scored_alike() -> None:
    rows = [
        Row("a", "host-oom", ("shm-too-small",), "shm-too-small", ("host-oom",)),
        Row("b", "host-oom", ("shm-too-small",), UNKNOWN, ("disk-full", "clock-skew", "host-oom")),
        Row("c", UNKNOWN, ("host-oom",), "disk-full", ("clock-skew", "host-oom")),
    ]
    figures = Table(rows).figures()
    shares = {
        key: (round(figures[key] * 3), round(figures[f"{key}_or_secondary"] * 3))
        for key in ("top1", "top3", "offered")
    }
    assert shares == {"top1": (0, 1), "top3": (1, 2), "offered": (2, 3)}
