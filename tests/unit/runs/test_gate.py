"""What every command that changes hosts passes through: consent, approval, and the journal before the hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from remedy.apply.carrier import Then
from remedy.apply.report import ChangeResult, ChangeStatus, HostReport
from remedy.apply.waves import waves
from remedy.audit.agreement import Agreement, plan_path
from remedy.audit.journal import FILE_NAME, read_records
from remedy.errors import RefusedError
from remedy.inventory import Inventory
from remedy.plan import Change, CommandAction, Plan, section_models
from remedy.runs.gate import Consent, Proposal, begin, require_approval
from remedy.runs.host import reported
from remedy.runs.outcome import HostOutcome, RunOutcome
from remedy.runs.session import Session
from remedy.spec import load_spec
from remedy.transport.connections import Transport
from tests.unit.build import record

HOSTS = tuple(f"gpu{number:02d}" for number in range(1, 6))
ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
DONE = HostReport("", {"01-x": ChangeResult(id="01-x", status=ChangeStatus.DONE)}, finished=True)


@dataclass
class Hosts:
    """A carrier that reaches no host: it notes what is asked of it, and which records were there by then."""

    journal: Path
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    keepers: list[str] = field(default_factory=list)
    report: HostReport = DONE

    def make(self, plan: Plan, run: str, *, then: Then, **_: Any) -> None:
        self._carry("make", plan, run, then)

    def take_back(self, plan: Plan, run: str, *, then: Then, **_: Any) -> None:
        self._carry("take back", plan, run, then)

    def tell(self, hosts: list[str], head: str) -> None:
        assert head
        self.keepers = hosts

    def _carry(self, what: str, plan: Plan, run: str, then: Then) -> None:
        assert run
        self.calls.append((what, plan.hosts))
        self.events = events(self.journal)
        for name in reversed(plan.hosts):
            then(name, self.report)


def events(journal: Path) -> list[str]:
    return [entry.body["event"] for entry in read_records(journal)]


def last(journal: Path) -> Mapping[str, Any]:
    *_, entry = read_records(journal)
    data: Mapping[str, Any] = entry.body["data"]
    return data


def plan(*hosts: str) -> Plan:
    changes = tuple(record(Change, id="01-x", host=host, action=ACTION) for host in hosts)
    made: Plan = record(Plan, author="ann@ops", changes=changes)
    return made


def session(folder: Path) -> tuple[Session, Hosts]:
    inventory = Inventory(folder / "inventory.py", ())
    opened = Session(inventory, load_spec(None, section_models()), cast(Transport, None), HOSTS)
    hosts = Hosts(inventory.home / FILE_NAME)
    opened.__dict__["carrier"] = hosts
    return opened, hosts


def proposal(target: Plan, of: str = "") -> Proposal:
    return Proposal("rollback" if of else "apply", Agreement(target, of=of), target)


def agree(_: Proposal) -> None:
    """Consent to everything."""


def refuse(_: Proposal) -> None:
    raise RefusedError("no")


def test_without_consent_nothing_is_recorded_and_no_host_is_asked(tmp_path: Path) -> None:
    opened, hosts = session(tmp_path)
    with pytest.raises(RefusedError):
        begin(opened, proposal(plan("gpu01")), refuse)
    assert (hosts.calls, hosts.journal.exists()) == ([], False)


def test_nobody_is_asked_where_nothing_is_to_be_changed(tmp_path: Path) -> None:
    opened, hosts = session(tmp_path)
    work = begin(opened, proposal(plan()), refuse)
    assert events(hosts.journal) == ["planned"]
    assert not plan_path(opened.home, work.run).exists()


@pytest.mark.parametrize(("of", "call"), [("", "make"), ("r1", "take back")])
def test_the_journal_has_each_step_before_it_is_made(tmp_path: Path, of: str, call: str) -> None:
    opened, hosts = session(tmp_path)
    target = plan("gpu01", "gpu02")
    work = begin(opened, proposal(target, of), agree)
    assert plan_path(opened.home, work.run).exists()
    work.carry(target)
    assert hosts.calls == [(call, ("gpu01", "gpu02"))]
    assert hosts.events == ["planned", "began"]
    assert events(hosts.journal) == ["planned", "began", "changed"]


def test_each_host_goes_on_when_it_has_reported_and_all_are_recorded_at_once(
    tmp_path: Path,
) -> None:
    opened, hosts = session(tmp_path)
    target = plan("gpu01", "gpu02")
    work = begin(opened, proposal(target), agree)
    went_on = []
    reports = work.carry(target, lambda name: went_on.append((name, events(hosts.journal)[2:])))
    assert went_on == [("gpu02", []), ("gpu01", ["changed"])]
    assert list(reports) == list(last(hosts.journal)["hosts"]) == ["gpu01", "gpu02"]
    assert opened.activity.at_work == ()


def test_the_end_is_recorded_and_kept_by_three_of_the_hosts(tmp_path: Path) -> None:
    opened, hosts = session(tmp_path)
    target = plan(*HOSTS)
    work = begin(opened, proposal(target), agree)
    reports = work.carry(target)
    outcomes = {name: reported(name, report, "inventory.py") for name, report in reports.items()}
    outcome = RunOutcome("apply", work.run, "inventory.py", outcomes, target, converged=True)
    assert work.end(outcome, {"gpu01": "boot"}) is outcome
    ended = last(hosts.journal)
    assert ended["exit_code"] == outcome.exit_code == 0
    assert ended["hosts"] == dict.fromkeys(HOSTS, "changed")
    assert ended["boots"] == {"gpu01": "boot"}
    assert hosts.keepers == list(HOSTS[:3])


def of_ten_changes(failed: int) -> HostReport:
    """The report of a host with ten changes; those after the one that failed were not tried."""
    results = {}
    for number in range(1, 11):
        status = ChangeStatus.DONE if number < failed else ChangeStatus.SKIPPED
        detail = ""
        if number == failed:
            status = ChangeStatus.FAILED
            detail = "sysctl: setting key net.ipv4.ip_local_port_range: Read-only file system " * 4
        change = f"{number:02}-port-range-gpu0001-sysctl"
        results[change] = ChangeResult(id=change, status=status, detail=detail)
    return HostReport("", results, finished=True)


@pytest.mark.parametrize("failed", [11, 4], ids=["all done", "the fourth failed"])
def test_a_run_in_waves_leaves_two_kilobytes_a_host_in_the_journal_at_most(
    tmp_path: Path, failed: int
) -> None:
    opened, hosts = session(tmp_path)
    names = tuple(f"gpu{number:05}.rack1.example" for number in range(400))
    hosts.report = of_ten_changes(failed)
    target = plan(*names)
    steps = waves(names, "1,1%,10%,100%")
    work = begin(opened, proposal(target), agree, waves=len(steps), sizes="1,1%,10%,100%")
    outcomes: dict[str, HostOutcome] = {}
    for wave in steps:
        reports = work.carry(target.restricted(wave))
        outcomes |= {
            name: reported(name, report, "inventory.py") for name, report in reports.items()
        }
    boots = dict.fromkeys(names, "6f1c7a52-9a35-4a4c-9a62-3f1df0f6a1c9")
    work.end(RunOutcome("apply", work.run, "inventory.py", outcomes, target), boots)
    assert events(hosts.journal) == ["planned", *["began", "changed"] * len(steps), "ended"]
    assert hosts.journal.stat().st_size <= 2048 * len(names)


@pytest.mark.parametrize(("required", "minimum"), [(1, 0), (0, 2)])
def test_only_a_plan_file_can_be_approved(tmp_path: Path, required: int, minimum: int) -> None:
    opened, _ = session(tmp_path)
    opened.spec.override("approval", required=required)
    with pytest.raises(RefusedError, match=f"{max(required, minimum)} approvals? required"):
        require_approval(opened, None, None, minimum)


def test_no_approval_is_asked_for_by_default(tmp_path: Path) -> None:
    opened, _ = session(tmp_path)
    assert require_approval(opened, plan("gpu01"), None, 0) == (None, ())


def test_consent_is_asked_with_the_whole_proposal(tmp_path: Path) -> None:
    opened, _ = session(tmp_path)
    asked: list[Proposal] = []
    consent: Consent = asked.append
    target = proposal(plan("gpu01"))
    begin(opened, target, consent)
    assert asked == [target]


def test_no_command_begins_without_the_approvals_that_the_spec_requires(tmp_path: Path) -> None:
    opened, hosts = session(tmp_path)
    opened.spec.override("approval", required=1)
    for of in ("", "r1"):
        with pytest.raises(RefusedError, match="1 approval required"):
            begin(opened, proposal(plan("gpu01"), of), lambda _: None)
    assert hosts.calls == []
