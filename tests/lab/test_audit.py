"""The audit trail on real hosts: a run that stops, is resumed, taken back, redone; what is on record of it."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from remedy.audit.journal import FILE_NAME, HEAD_NAME, canonical
from remedy.plan import sha256
from tests.lab.conftest import Cluster
from tests.lab.site import HostNames, RemedyOutput, Site

pytestmark = pytest.mark.lab

HUMAN = "10.9.9.9 a-humans-fix\n"


@dataclass(frozen=True)
class Trail:
    """What was said and what was there at each point of the story."""

    site: Site
    broken: Mapping[str, HostNames]
    stopped: RemedyOutput
    resumed: RemedyOutput
    right: Mapping[str, HostNames]
    again: RemedyOutput
    asked: RemedyOutput
    back: RemedyOutput
    undone: Mapping[str, HostNames]
    redone: RemedyOutput
    right_again: Mapping[str, HostNames]
    conflict: RemedyOutput
    after_conflict: Mapping[str, HostNames]

    def run(self, answer: str) -> str:
        """The id of the run of an answer."""
        return str(getattr(self, answer).document["run"])


@pytest.fixture(scope="module")
def trail(module_cluster: Cluster) -> Trail:
    site = Site(module_cluster)
    told: dict[str, Any] = {"site": site, "broken": site.all_names()}
    # The second wave is not begun: the first host has no room for its receipts.
    module_cluster.host("gpu01").must("echo no folder >/var/lib/remedy")
    told["stopped"] = site.remedy(
        *("apply", "--yes", "--no-verify", "--json", "--waves", "1,100%", "--max-failures", "0")
    )
    module_cluster.host("gpu01").must("rm /var/lib/remedy")
    run = told["stopped"].document["run"]
    told["resumed"] = site.remedy("apply", "--resume", run, "--yes", "--no-verify", "--json")
    told["right"] = site.all_names()
    told["again"] = site.remedy("apply", "--resume", run, "--yes", "--no-verify", "--json")
    told["asked"] = site.remedy("rollback", told["resumed"].document["run"])
    told["back"] = site.remedy("rollback", told["resumed"].document["run"], "--yes", "--json")
    told["undone"] = site.all_names()
    told["redone"] = site.remedy("rollback", told["back"].document["run"], "--yes", "--json")
    told["right_again"] = site.all_names()
    module_cluster.host("gpu02").must(f"printf '{HUMAN}' >>/etc/hosts")
    told["conflict"] = site.remedy("rollback", told["redone"].document["run"], "--yes", "--json")
    told["after_conflict"] = site.all_names()
    return Trail(**told)


def test_a_run_stops_before_the_next_wave_and_names_who_was_not_reached(trail: Trail) -> None:
    assert trail.stopped.code == 1, trail.stopped.text
    status = {name: host["status"] for name, host in trail.stopped.document["hosts"].items()}
    assert status == {
        "gpu01": "failed",
        **dict.fromkeys(("gpu02", "gpu03", "gpu04"), "not reached"),
    }
    assert (
        f"--resume {trail.run('stopped')}" in trail.stopped.document["hosts"]["gpu02"]["next_step"]
    )


def test_it_is_gone_on_with_where_it_stopped(trail: Trail) -> None:
    assert trail.resumed.code == 0, trail.resumed.text
    status = {name: host["status"] for name, host in trail.resumed.document["hosts"].items()}
    assert set(status.values()) == {"changed"}
    for host, names in trail.right.items():
        assert (names.running, names.static) == (host, f"{host}\n".encode())
    assert trail.again.code == 0
    assert trail.again.document["plan"]["changes"] == []


def test_who_is_asked_reads_in_words_what_the_hosts_vouch_for(trail: Trail) -> None:
    assert trail.asked.code == 2, trail.asked.text
    assert f"Take back {trail.run('resumed')}: " in trail.asked.stdout
    assert "does     gives the kernel the name 'node' by hostname" in trail.asked.stdout
    assert "ff02::2 ip6-allrouters" in trail.asked.stdout  # a line above those that go
    assert "sha256" not in trail.asked.stdout


def test_a_rollback_restores_every_byte_and_can_be_taken_back(trail: Trail) -> None:
    assert trail.back.code == 0, trail.back.text
    assert trail.undone == trail.broken
    assert trail.redone.code == 0, trail.redone.text
    assert trail.right_again == trail.right
    assert trail.redone.document["of"] == trail.run("back")


def test_what_somebody_changed_since_is_left_alone_and_both_are_told(trail: Trail) -> None:
    assert trail.conflict.code == 4, trail.conflict.text
    assert trail.after_conflict["gpu02"].hosts.endswith(HUMAN.encode())
    assert trail.after_conflict["gpu02"].static == trail.right["gpu02"].static
    assert trail.after_conflict["gpu03"] == trail.broken["gpu03"]
    told = trail.conflict.stderr
    assert f"/etc/hosts was changed since run {trail.run('redone')}: expected sha256" in told
    assert "last written" in told


def test_the_journal_and_the_hosts_agree(trail: Trail) -> None:
    good = trail.site.remedy("audit verify", "--hosts")
    assert good.code == 0, good.text
    assert "4 hosts agree" in good.stdout


def test_a_journal_that_was_written_anew_is_found_by_the_hosts(trail: Trail) -> None:
    home = trail.site.folder / ".remedy"
    whole, head = (home / FILE_NAME).read_bytes(), (home / HEAD_NAME).read_bytes()
    try:
        (home / FILE_NAME).write_bytes(b"")
        (home / HEAD_NAME).unlink()
        assert trail.site.remedy("audit verify").code == 0
        found = trail.site.remedy("audit verify", "--hosts")
        assert found.code == 1
        assert "gpu[01-04]: run " in found.stdout
        assert "of another journal in this folder" in found.stdout
    finally:
        (home / FILE_NAME).write_bytes(whole)
        (home / HEAD_NAME).write_bytes(head)


def test_a_last_record_that_was_written_anew_is_found_by_the_hosts(trail: Trail) -> None:
    home = trail.site.folder / ".remedy"
    whole, head = (home / FILE_NAME).read_bytes(), (home / HEAD_NAME).read_bytes()
    *lines, last = whole.splitlines(keepends=True)
    body = json.loads(last)
    assert body["event"] == "ended"
    body["data"]["exit_code"] = 0
    del body["hash"]
    own = sha256(canonical(body).encode())
    try:
        anew = canonical({**body, "hash": own}).encode() + b"\n"
        (home / FILE_NAME).write_bytes(b"".join(lines) + anew)
        (home / HEAD_NAME).write_text(canonical({**json.loads(head), "hash": own}) + "\n")
        assert trail.site.remedy("audit verify").code == 0  # nothing here tells
        found = trail.site.remedy("audit verify", "--hosts")
        assert found.code == 1
        assert (
            f"record {body['seq']} is not the one that run {body['run']} left on it" in found.stdout
        )
        asked = trail.site.remedy("rollback", trail.run("conflict"))
        assert "the host does not vouch for it: read every line" in asked.stdout
        assert "does     gives" not in asked.stdout
    finally:
        (home / FILE_NAME).write_bytes(whole)
        (home / HEAD_NAME).write_bytes(head)


def test_an_auditor_gets_the_whole_story_of_a_host(trail: Trail) -> None:
    done = trail.site.remedy("audit export", "--host", "gpu03")
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["host"] for row in table} == {"gpu03"}
    seen = list(dict.fromkeys((row["mode"], row["run"]) for row in table))
    assert [mode for mode, _ in seen] == ["apply"] * 3 + ["rollback"] * 3
    made = [row for row in table if row["run"] == trail.run("resumed")]
    assert {row["status"] for row in made} == {"done"}
    assert all(row["by"] and row["before"] and row["after"] and row["reason"] for row in made)


def test_a_plan_holds_no_line_that_it_does_not_change(trail: Trail) -> None:
    path = trail.site.folder / ".remedy" / "runs" / trail.run("stopped") / "plan.json"
    plan = json.loads(path.read_text())["plan"]
    files = [c["action"] for c in plan["changes"] if c["action"]["kind"] == "file"]
    assert any(action.get("splices") for action in files)
    assert "ip6-allrouters" in trail.broken["gpu01"].hosts.decode()
    assert not any(b"ip6-allrouters" in blob for blob in _decoded(plan["blobs"].values()))


def _decoded(blobs: Iterable[str]) -> list[bytes]:
    return [base64.urlsafe_b64decode(text) for text in blobs]
