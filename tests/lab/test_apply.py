"""The whole story on broken hosts: look, fix, prove, nothing left to fix, undo, fix again."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remedy.audit.journal import FILE_NAME, read_records, verify_chain
from remedy.lab.faults.hosts_file import HUGE_LINES
from remedy.plan import sha256
from remedy.runs.probe import probe
from remedy.runs.session import open_session
from tests.lab.conftest import Cluster
from tests.lab.runs import carry_out
from tests.lab.site import DISABLED, HostNames, RemedyOutput, Site, outside_block

pytestmark = pytest.mark.lab

# What is wrong with each host beyond what a fresh one has anyway: one name for all, no names of its peers.
FAULTS = {
    "gpu01": ("hosts-not-utf8", "hosts-crlf"),
    "gpu02": ("loopback-name", "hosts-huge"),
    "gpu03": ("stale-peer-entry", "conflicting-line"),
    "gpu04": ("hosts-symlink", "hostname-lost-at-reboot"),
}
RUN_KEYS = {
    *("schema", "mode", "run", "of", "inventory", "hosts", "plan", "converged", "verdict"),
    *("explanation", "views", "waves", "after_reboot", "warnings", "exit_code"),
    *("tool_version", "began", "ended"),
    "findings",  # of the fleet as a whole
}


@dataclass(frozen=True)
class ApplyStory:
    """What was said and what was there at each point of the story."""

    site: Site
    broken: Mapping[str, HostNames]
    check: RemedyOutput
    checked: RemedyOutput
    unasked: RemedyOutput
    looked_at: Mapping[str, HostNames]
    planned: RemedyOutput
    applied: RemedyOutput
    right: Mapping[str, HostNames]
    resolved: Mapping[str, Mapping[str, str]]
    again: RemedyOutput
    sessions: Mapping[str, Counter[str]]
    back: RemedyOutput
    undone: Mapping[str, HostNames]
    third: RemedyOutput
    right_again: Mapping[str, HostNames]
    by_hand: str
    undone_by_hand: Mapping[str, HostNames]

    @property
    def run(self) -> str:
        """The id of the run that repaired the hosts."""
        return str(self.applied.document["run"])


@pytest.fixture(scope="module")
def story(module_cluster: Cluster) -> ApplyStory:
    site = Site(module_cluster)
    site.make_ranks_cheap()
    for host, faults in FAULTS.items():
        module_cluster.fault(host, *faults)
    told: dict[str, Any] = {"site": site, "broken": site.all_names()}
    told["check"] = site.remedy("check", "--json")
    told["checked"] = site.remedy("check", "--exit-code")
    told["unasked"] = site.remedy("apply")
    told["looked_at"] = site.all_names()
    told["planned"] = site.remedy("plan", "--html", str(site.folder / "plan.html"))
    told["applied"] = site.remedy(
        "apply", "--yes", "--json", "--html", str(site.folder / "run.html")
    )
    told["right"] = site.all_names()
    told["resolved"] = {host: site.resolved(host) for host in module_cluster.hosts}
    marks = site.log_sessions()
    told["again"] = site.remedy("apply", "--yes", "--no-verify", "--json")
    told["sessions"] = site.sessions(marks)
    run = told["applied"].document["run"]
    told["back"] = site.remedy("rollback", run, "--yes", "--json")
    told["undone"] = site.all_names()
    told["third"] = site.remedy("apply", "--yes", "--no-verify", "--json")
    told["right_again"] = site.all_names()
    last = told["third"].document["run"]
    told["by_hand"] = module_cluster.run("gpu03", f"sh /var/lib/remedy/runs/{last}/undo").stdout
    told["undone_by_hand"] = site.all_names()
    return ApplyStory(**told)


def test_check_reports_and_changes_nothing(story: ApplyStory) -> None:
    assert (story.check.code, story.checked.code) == (0, 10)
    assert story.looked_at == story.broken
    document = story.check.document
    assert {host["status"] for host in document["hosts"].values()} == {"pending"}
    assert (document["converged"], document["verdict"]) == (None, None)
    assert document["run"] != story.run, "a check is on record as a run of its own"
    assert "'node' is used by" in story.checked.stdout
    assert "~ gpu[01-03]: set the running host name to 'gpu[01-03]'" in story.checked.stdout


def test_nothing_is_changed_without_consent(story: ApplyStory) -> None:
    assert story.unasked.code == 2
    assert "standard input is no terminal" in story.unasked.stderr
    assert "--yes" in story.unasked.stderr
    assert story.looked_at == story.broken


def test_a_plan_shows_a_contradicting_line_before_and_after(story: ApplyStory) -> None:
    shown = story.checked.stdout
    for line in (
        r"-127\.0\.1\.1 +gpu02",
        r"\+#remedy disabled# 127\.0\.1\.1 +gpu02",
        r"-10\.\S+\.250   gpu04 storage-old  # do not touch",
        r"\+#remedy disabled# 10\.\S+\.250   gpu04 storage-old  # do not touch",
        r"\+10\.\S+\.250 +storage-old",
        r"-10\.\S+\.230 +gpu04",
    ):
        assert re.search(rf"^ +{line}$", shown, re.M), line
    assert "/etc/hosts is a link; the file that changes is /etc/site/hosts" in shown


def test_apply_says_what_it_did_in_one_document(story: ApplyStory) -> None:
    assert story.applied.code == 0, story.applied.stderr
    document = story.applied.document
    assert set(document) == RUN_KEYS
    assert document["schema"] == "remedy.run/1"
    assert Path(document["inventory"]).is_absolute()
    assert Path(document["inventory"]).name == "inventory.py"
    assert document["exit_code"] == 0
    assert document["converged"] is True
    assert set(document["hosts"]) == set(FAULTS)
    for name, host in document["hosts"].items():
        assert {"status", "changes", "findings"} <= set(host)
        assert host["status"] == "changed"
        assert {change["status"] for change in host["changes"]} == {"done"}
        planned = [c["id"] for c in document["plan"]["changes"] if c["host"] == name]
        assert [change["id"] for change in host["changes"]] == planned
    assert re.fullmatch("[0-9a-f]{64}", document["plan"]["digest"])


def test_the_plan_and_the_run_have_pages(story: ApplyStory) -> None:
    assert story.planned.code == 0
    plan, run = (
        html.unescape((story.site.folder / name).read_text(encoding="utf-8"))
        for name in ("plan.html", "run.html")
    )
    document = story.applied.document
    title = document["plan"]["changes"][0]["title"]
    assert title in plan
    assert title in run
    assert document["run"] in run
    assert '<span class="good">proved</span>' in run
    assert "<svg" in run


def test_the_all_reduce_proves_it(story: ApplyStory) -> None:
    if story.site.cluster.lab.record().python is None:
        pytest.skip("no torch for the hosts")
    verdict = story.applied.document["verdict"]
    assert verdict["passed"] is True
    assert verdict["backend"] == "gloo"
    assert verdict["world_size"] == verdict["hosts"] == len(FAULTS)
    assert verdict["busbw_gbps"] > 0
    assert verdict["reason"]


def test_every_host_has_its_name_and_finds_every_other(story: ApplyStory) -> None:
    assert story.right.keys() == FAULTS.keys()
    for host, names in story.right.items():
        assert (names.running, names.static) == (host, f"{host}\n".encode())
        assert story.resolved[host] == story.site.addresses()


def test_what_nobody_asked_to_change_is_as_it_was(story: ApplyStory) -> None:
    for host in FAULTS:
        before, after = story.broken[host], story.right[host]
        assert (after.owner_mode, after.link) == (before.owner_mode, before.link)
        was, now = outside_block(before.hosts), outside_block(after.hosts)
        disabled = [line for line in now if line.startswith(DISABLED)]
        # Apart from lines that are disabled, and what is left of them, nothing has moved.
        touched = {line.removeprefix(DISABLED) for line in disabled}
        kept = [line for line in was if line not in touched]
        known = set(kept)
        assert [line for line in now if line in known] == kept
        assert len(disabled) == {"gpu02": 1, "gpu03": 2}.get(host, 0)
    assert story.right["gpu04"].link == "site/hosts"
    crlf = story.right["gpu01"].hosts
    assert crlf.count(b"\r\n") == story.broken["gpu01"].hosts.count(b"\n") > 1
    assert b"B\xfcro, 2. Stock \xff\xfe" in crlf
    assert len(story.right["gpu02"].hosts.splitlines()) > HUGE_LINES
    rest = outside_block(story.right["gpu03"].hosts)
    assert any(line.endswith(b".250\tstorage-old\n") for line in rest)
    assert not any(story.site.copies(host) for host in FAULTS)


def test_a_second_run_changes_nothing(story: ApplyStory) -> None:
    assert story.again.code == 0
    document = story.again.document
    assert document["plan"]["changes"] == []
    assert {host["status"] for host in document["hosts"].values()} == {"ok"}
    assert document["converged"] is True
    assert document["verdict"] is None


def test_a_run_with_nothing_to_do_costs_one_connection_and_one_command(story: ApplyStory) -> None:
    assert story.sessions == {host: Counter(accepted=1, session=1) for host in FAULTS}


def test_a_rollback_restores_every_byte(story: ApplyStory) -> None:
    assert story.back.code == 0, story.back.stderr
    document = story.back.document
    assert (document["mode"], document["of"]) == ("rollback", story.run)
    results = [change for host in document["hosts"].values() for change in host["changes"]]
    assert {result["status"] for result in results} == {"done"}
    assert len(results) == len(story.applied.document["plan"]["changes"])
    assert story.undone == story.broken


def test_what_was_undone_can_be_done_again(story: ApplyStory) -> None:
    assert story.third.code == 0, story.third.stderr
    assert story.right_again == story.right


def test_a_host_can_undo_a_run_by_itself(story: ApplyStory) -> None:
    assert "undo-" in story.by_hand
    assert "failed" not in story.by_hand
    assert story.undone_by_hand == {**story.right_again, "gpu03": story.broken["gpu03"]}


def test_the_journal_tells_every_run_and_its_chain_is_whole(story: ApplyStory) -> None:
    path = story.site.folder / ".remedy" / FILE_NAME
    count, problem = verify_chain(path)
    assert problem == ""
    bodies = [record.body for record in read_records(path)]
    assert len(bodies) == count
    modes = list(dict.fromkeys((body["run"], body["mode"]) for body in bodies))
    looks, runs = ["check", "check"], ["apply", "apply", "rollback", "apply"]
    assert [mode for _, mode in modes] == looks + runs
    first = [body["event"] for body in bodies if body["run"] == story.run][:5]
    assert first == ["planned", "began", "changed", "verified", "ended"]
    assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0
    history = story.site.remedy("history")
    assert history.code == 0
    assert re.search(rf"^{story.run}  apply +\d+ changes +exit 0 +proved", history.stdout, re.M)
    audit = story.site.remedy("audit verify")
    assert (audit.code, "the chain is whole" in audit.stdout) == (0, True)


def test_receipts_are_on_each_host_for_root_alone(story: ApplyStory) -> None:
    place = f"/var/lib/remedy/runs/{story.run}"
    for host in FAULTS:
        run = story.site.cluster.run
        assert (
            run(host, f"stat -c %a:%U /var/lib/remedy {place}").stdout.split() == ["700:root"] * 2
        )
        assert run(host, "runuser -u trainer -- ls /var/lib/remedy").returncode != 0
        receipt = [
            json.loads(x) for x in run(host, f"cat {place}/receipt.jsonl").stdout.splitlines()
        ]
        log = [json.loads(x) for x in run(host, "cat /var/log/remedy.jsonl").stdout.splitlines()]
        ids = {c["id"] for c in story.applied.document["hosts"][host]["changes"]}
        done = {line["change"] for line in receipt if line["state"] == "done"}
        assert ids <= done
        assert [line for line in log if line["run"] == story.run] == receipt
        assert all("@" in line["by"] for line in log)
        # The pre-image is what was there.
        assert sha256(story.broken[host].hosts) in run(host, f"sha256sum {place}/pre/*").stdout


def test_the_transport_counts_the_same(story: ApplyStory) -> None:
    """Last, since it changes hosts: what the controller counts is what the hosts have seen."""
    counts = []
    for _ in range(2):
        session = open_session(story.site.inventory)
        result = probe(session)
        assert carry_out(session, result.plan, result).exit_code == 0
        session.transport.close()
        counts.append(session.transport.counts)
    # The host that undid a run by itself: a look and the changes; then over a new connection, since a change
    # may let nobody in any more, a second look and the last record of the run.
    assert {key: counts[0][key] for key in ("connect:gpu03", "exec:gpu03")} == {
        "connect:gpu03": 2,
        "exec:gpu03": 4,
    }
    each = [f"{what}:{host}" for what in ("connect", "exec") for host in FAULTS]
    assert counts[1] == Counter(dict.fromkeys(each, 1))
