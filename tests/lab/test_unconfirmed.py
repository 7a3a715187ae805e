"""A host that is about to change by itself: each command says so, and none calls it good."""

from __future__ import annotations

import json

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

WAITS = "nft list table inet lab_unconfirmed >/dev/null 2>&1"


def test_what_each_command_says_of_it(cluster: Cluster) -> None:
    site = Site(cluster)
    hosts = ("--limit", "gpu01,gpu02")
    assert site.remedy("apply", "--yes", "--no-verify", *hosts).code == 0
    cluster.fault("gpu01", "unconfirmed-change")
    checked = site.remedy("check", *hosts)
    assert cluster.run("gpu01", WAITS).returncode == 0, "it was taken back too early for this test"
    assert checked.code == 4
    assert "unsettled   gpu01" in checked.stdout
    assert "ok          gpu02" in checked.stdout
    assert "add the table inet lab_unconfirmed" in checked.stdout
    # Of somebody else's run nobody can tell whether it will be confirmed: the next command waits for the host.
    applied = site.remedy("apply", "--yes", "--no-verify", *hosts)
    assert applied.code == 0, applied.text
    assert "gpu01: waited" in applied.stdout
    assert "the host took the guarded changes back" in applied.stdout
    assert cluster.run("gpu01", WAITS).returncode != 0
    assert site.remedy("check", *hosts).code == 0


def test_what_somebody_has_scheduled_is_not_called_good(cluster: Cluster) -> None:
    site = Site(cluster)
    hosts = ("--limit", "gpu01,gpu02")
    assert site.remedy("apply", "--yes", "--no-verify", *hosts).code == 0
    cluster.fault("gpu01", "scheduled-change")
    cluster.fault("gpu02", "scheduled-reboot")
    checked = site.remedy("check", "--json", *hosts)
    assert checked.code == 1
    found = {
        host: [(f["kind"], f["title"]) for f in told["findings"] if f["remedy"] == "schedule"]
        for host, told in checked.document["hosts"].items()
    }
    assert found["gpu01"] == [("unknown", "take-back.timer is to run: /usr/sbin/nft flush ruleset")]
    ((kind, title),) = found["gpu02"]
    assert (kind, title[:22]) == ("unknown", "a reboot is scheduled ")
    cluster.host("gpu01").must("systemctl stop take-back.timer")
    cluster.host("gpu02").must("shutdown -c")
    assert site.remedy("check", *hosts).code == 0


def test_a_user_without_root_is_not_told_that_nothing_waits(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", "--yes", "--no-verify", "--limit", "gpu01").code == 0
    cluster.host("gpu01").must(
        "useradd -m ops; cp -r /root/.ssh /home/ops/; chown -R ops: /home/ops/.ssh"
    )
    site.edit_inventory({"gpu01": {"ssh_user": "ops"}})
    checked = site.remedy("check", "--limit", "gpu01")
    assert checked.code == 1
    assert "unknown whether a change waits there for a confirmation" in checked.stdout


def test_show_asks_the_hosts_what_the_journal_does_not_have(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", "--yes", "--no-verify", "--limit", "gpu01").code == 0
    journal = site.folder / ".remedy" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    run = json.loads(lines[0])["run"]
    # As a controller that was killed after it had begun leaves its journal.
    journal.write_text("".join(lines[:2]))
    (site.folder / ".remedy" / "head").unlink()
    shown = site.show(run)
    assert "not known   gpu01" in shown.stdout
    assert "not made" not in shown.stdout
    assert "receipts    gpu01: began" in shown.stdout
    assert "01-" in shown.stdout
    assert "is not known" not in shown.stdout
    assert "--inventory" not in shown.stdout, "it was given"
    # A new disk, or another machine at its address: what that one noted is nothing about this run.
    cluster.host("gpu01").must("head -c16 /dev/urandom | od -An -tx1 | tr -d ' ' >/etc/machine-id")
    stranger = site.show(run)
    assert "receipts    gpu01: not read: a different machine answers there now" in stranger.stdout
    assert "made 01-" not in stranger.stdout
