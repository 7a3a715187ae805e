"""A failed verification explains itself: its own logs, what it saw, and what the hosts say to that."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from remedy.audit import Journal
from remedy.audit.journal import read_records
from remedy.diagnose.diagnosis import ConfirmationStatus, Explanation
from remedy.diagnose.verification import explain_verdict, logs_of
from remedy.plan import Finding, FindingKind
from remedy.report.ladder import render_verdict
from remedy.runs.proof import Proof, record
from remedy.verify.allreduce.answers import (
    AgentReport,
    EndReport,
    LauncherReport,
    RankError,
    RankReport,
)
from remedy.verify.allreduce.logs import logs_of as logs_of_reports
from remedy.verify.last import load
from remedy.verify.verdict import ENDINGS, Culprit, DeadLink, Verdict
from tests.unit.plans import plan_with

HOSTS = ("gpu01", "gpu02")


def failed(**more: object) -> Verdict:
    return Verdict(passed=False, reason="rank 1 came to 'rendezvous', not to a result", **more)  # type: ignore[arg-type]


def way(outcome: str, detail: str = "", port: int = 41235) -> DeadLink:
    return DeadLink(source="gpu01", target="gpu02", port=port, outcome=outcome, detail=detail)  # type: ignore[arg-type]


def explained(verdict: Verdict, *findings: Finding) -> Explanation:
    found = explain_verdict(verdict, plan_with(*findings), HOSTS, "inventory.py")
    assert found is not None
    return found


def test_what_passed_needs_no_cause() -> None:
    assert explain_verdict(Verdict(passed=True, reason=""), plan_with(), HOSTS, "i.py") is None


def test_where_nothing_failed_and_it_is_told_what_to_do_no_cause_is_sought() -> None:
    reason = "gpu[01-02] run on one machine (same boot-id): no network between them was tested"
    step = "Give the inventory one host of each machine."
    machine = Culprit(name="gpu[01-02]", hosts=HOSTS, reason=reason, next_step=step)
    exact = failed(culprits=(machine,), sum_exact=True)
    assert explain_verdict(exact, plan_with(), HOSTS, "i.py") is None
    for other in (
        failed(culprits=(machine,)),
        failed(sum_exact=True),
        failed(culprits=(machine, Culprit(reason="gpu01: slow")), sum_exact=True),
    ):
        assert explained(other).diagnosis.label == "unknown"


@pytest.mark.parametrize(
    ("dead", "label"),
    [
        (way("dropped", "4.0 s"), "firewall-ports"),
        (way("rejected", "EHOSTUNREACH"), "firewall-ports"),
        (way("refused", "ECONNREFUSED"), "firewall-ports"),
        (way("stalled"), "mtu-mismatch"),
        (way("no name", "does not resolve", 0), "hostname-unresolvable"),
        (way("no name", "gpu02 is 127.0.1.1", 0), "loopback-hostname"),
        (way("no name", "gpu02 is 10.9.9.9", 0), "hostname-unresolvable"),
    ],
    ids=lambda one: one.outcome if isinstance(one, DeadLink) else one,
)
def test_a_way_that_does_not_work_has_a_cause(dead: DeadLink, label: str) -> None:
    found = explained(failed(dead_links=(dead,)))
    assert label in {candidate.label for candidate in found.diagnosis.candidates}
    # The hosts show nothing of it: what can only be on a host is not the cause, the rest is not certain.
    between = {"stalled": "mtu-mismatch", "rejected": "network-unreachable"}
    assert found.diagnosis.label == between.get(dead.outcome, "unknown")
    assert found.diagnosis.confidence != "certain"


@pytest.mark.parametrize("dead", [way("dropped", "4.0 s"), way("rejected", "EHOSTUNREACH")])
def test_a_cause_that_the_hosts_refute_is_not_first(dead: DeadLink) -> None:
    found = explained(failed(dead_links=(dead,)))
    status = found.confirmation_of(found.diagnosis.label)
    assert status is None or status.status is not ConfirmationStatus.REFUTED


def test_the_next_step_looks_closer_where_the_hosts_are_as_they_should_be() -> None:
    step = "remedy verify i.py --limit 'gpu[01-02]' --explain"
    cause = Culprit(name="gpu02", hosts=("gpu02",), reason="x", next_step=step)
    assert explained(failed(dead_links=(way("dropped"),), culprits=(cause,))).command == step


def on_host(host: str, label: str, kind: FindingKind = FindingKind.BLOCKED) -> Finding:
    return Finding(host=host, remedy="firewall", kind=kind, label=label, title=f"{label} there")


def test_what_a_culprit_shows_is_the_cause_where_no_line_speaks_for_one_that_hosts_bear_out() -> (
    None
):
    cause = Culprit(name="gpu02", hosts=("gpu02",), reason="gpu02: x")
    verdict = failed(dead_links=(way("dropped"),), culprits=(cause,))
    explanation = explained(verdict, on_host("gpu02", "unit-keeps-from-peers"))
    assert explanation.diagnosis.label == "unit-keeps-from-peers"
    assert explanation.diagnosis.confidence == "likely"
    confirmation = explanation.confirmation_of("unit-keeps-from-peers")
    assert confirmation is not None
    assert (confirmation.status, confirmation.hosts) == (ConfirmationStatus.CONFIRMED, ("gpu02",))


@pytest.mark.parametrize(
    "finding",
    [
        on_host("gpu01", "unit-keeps-from-peers"),
        on_host("gpu02", "unit-keeps-from-peers", FindingKind.REPORT),
        on_host("gpu02", "unit-keeps-from-peers", FindingKind.UNKNOWN),
        on_host("gpu02", "memlock-limit"),
        on_host("gpu02", ""),
    ],
    ids=["another host", "only worth knowing", "not known", "another matter", "no label"],
)
def test_what_does_not_explain_the_culprit_is_no_cause(finding: Finding) -> None:
    cause = Culprit(name="gpu02", hosts=("gpu02",), reason="gpu02: x")
    verdict = failed(dead_links=(way("dropped"),), culprits=(cause,))
    assert explained(verdict, finding).diagnosis.label == "unknown"


def test_the_program_of_a_verification_is_never_its_cause() -> None:
    log = ("train.py:3: UserWarning: odd", "ValueError: of remedy's own program")
    verdict = failed(dead_links=(way("dropped"),), logs={"gpu01/launcher": log})
    diagnosis = explained(verdict).diagnosis
    assert "application-error" not in {diagnosis.label, *(c.label for c in diagnosis.candidates)}


def test_a_way_that_was_not_tested_has_none() -> None:
    others = set(ENDINGS) - {"dropped", "rejected", "refused", "stalled", "no name"}
    assert others
    for outcome in others:
        assert explained(failed(dead_links=(way(outcome),))).diagnosis.label == "unknown", outcome


def test_the_logs_of_the_ranks_are_read() -> None:
    log = ("RuntimeError: [enforce fail at device.cc:83] Unable to find address for: eno7",)
    found = explained(failed(logs={"gpu02/rank0": log}))
    assert found.diagnosis.candidates[0].label == "wrong-interface"
    assert found.diagnosis.lead is not None
    assert found.diagnosis.lead.file == "gpu02/rank0"
    assert found.command is None  # this host does not show it


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        ("MemoryError", "possible"),
        ("OSError: [Errno 12] Cannot allocate memory", "possible"),
        ("Memory cgroup out of memory: Killed process 812 (python3)", "likely"),
    ],
)
def test_memory_that_was_refused_is_no_proof_that_the_kernel_killed(
    line: str, confidence: str
) -> None:
    found = explained(failed(logs={"gpu02/rank0": (line,)}))
    assert (found.diagnosis.label, found.diagnosis.confidence) == ("host-oom", confidence)


def test_a_report_gives_its_logs() -> None:
    rank = RankReport(
        kind="rank",
        local_rank=1,
        phase="started",
        times={},
        result=None,
        error=RankError(phase="started", text="e", long="Traceback\nValueError: x"),
        missing=(),
        exit_code=1,
        network=("NCCL INFO Bootstrap : Using docker0",),
        log=("a", "ValueError: x"),
    )
    report = AgentReport(
        host="gpu02",
        end=EndReport(kind="end", how="exited", unanswered=(("10.0.0.9", 41235, 3.1),)),
        ranks=(rank,),
        launcher=LauncherReport(kind="launcher", exit_code=1, log=()),
    )
    assert logs_of_reports({"gpu02": report, "gpu03": AgentReport(host="gpu03", failure="x")}) == {
        "gpu02/rank1": ("NCCL INFO Bootstrap : Using docker0", "a", "ValueError: x", "Traceback"),
        "gpu02/network": ("no answer from 10.0.0.9 port 41235 for 3.1 s",),
    }


def test_what_verification_itself_says_counts() -> None:
    reason = "2 hosts call themselves 'node'"
    cause = Culprit(name="gpu01, gpu02", hosts=HOSTS, reason=reason)
    verdict = failed(culprits=(cause,))
    assert logs_of(verdict) == {"remedy verify": [reason]}
    assert explained(verdict).diagnosis.candidates[0].label == "duplicate-hostname"


def test_a_failure_is_never_healthy() -> None:
    logs = {"gpu01/rank0": ("step 1 loss 0.1", "training finished")}
    assert explained(failed(logs=logs)).diagnosis.label == "unknown"


def test_what_ranks_raise_is_no_error_of_the_users_program() -> None:
    logs = {"gpu01/rank0": ("RuntimeError: ranks [1] did not join the rendezvous",)}
    assert explained(failed(logs=logs)).diagnosis.label == "unknown"


def test_what_the_hosts_confirm_comes_first_with_its_command() -> None:
    found = explained(
        failed(dead_links=(way("rejected"),)),
        Finding(
            host="gpu02",
            remedy="network_health",
            kind=FindingKind.REPORT,
            label="network-unreachable",
            title="eno2 is down",
            evidence=("state down",),
        ),
    )
    assert found.diagnosis.label == "network-unreachable"
    own = found.confirmation_of("network-unreachable")
    assert own is not None
    assert (own.status, own.hosts) == (ConfirmationStatus.CONFIRMED, ("gpu02",))
    other = found.confirmation_of("firewall-ports")
    assert other is not None
    assert other.status is ConfirmationStatus.REFUTED


def test_people_see_cause_command_and_where_to_read_on() -> None:
    verdict = failed(dead_links=(way("dropped"),))
    found = explained(verdict).model_copy(update={"command": "remedy apply i.py --limit gpu02"})
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render_verdict(verdict, found))
    text = console.export_text()
    for part in ("firewall-ports: refuted", "remedy apply i.py --limit gpu02"):
        assert part in text


def test_logs_are_not_kept_and_the_cause_is(tmp_path: Path) -> None:
    verdict = failed(logs={"gpu01/rank0": ("x",)}, dead_links=(way("dropped"),))
    journal = Journal(tmp_path, run="r1", mode="verify")
    record(Proof(verdict, explained(verdict)), journal, tmp_path)
    (entry,) = read_records(journal.path)
    assert entry.body["data"]["cause"] == "unknown"
    assert "logs" not in entry.body["data"]
    last = load(tmp_path)
    assert isinstance(last, Verdict)
    assert last.logs == {}
