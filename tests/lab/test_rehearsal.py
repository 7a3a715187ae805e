"""A rehearsal on real hosts: it writes nothing there, and the apply after it goes as it said."""

from __future__ import annotations

import json

import pytest

from remedy.audit.journal import FILE_NAME
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab


def statuses(document: dict[str, object], host: str) -> set[str]:
    hosts = document["hosts"]
    assert isinstance(hosts, dict)
    return {change["status"] for change in hosts[host]["changes"]}


def test_a_rehearsal_writes_nothing_and_says_what_apply_will_meet(cluster: Cluster) -> None:
    site = Site(cluster)
    plan = site.folder / "plan.json"
    assert site.remedy("plan", "-o", str(plan)).code == 0
    before = site.all_names()
    first = site.remedy("apply", "--plan", str(plan), "--rehearse")
    assert first.code == 0, first.text
    assert "rehearsed: nothing was written on any host" in first.stdout
    assert "ready       gpu[01-04]: " in first.stdout
    assert site.all_names() == before
    for host in cluster.hosts:
        assert cluster.run(host, "ls -d /var/lib/remedy /var/log/remedy.jsonl").stdout == ""

    cluster.host("gpu02").must("echo 10.9.9.9 a-humans-fix >>/etc/hosts")
    told = site.remedy("apply", "--plan", str(plan), "--rehearse", "--json")
    assert told.code == 4, told.text
    assert "stale" in statuses(told.document, "gpu02")
    assert statuses(told.document, "gpu01") == {"ready"}
    assert "a-humans-fix" not in told.text
    assert "a-humans-fix" not in (site.folder / ".remedy" / FILE_NAME).read_text()

    # A plan is not used up by rehearsals, and meets what they met.
    applied = site.remedy("apply", "--plan", str(plan), "--yes", "--no-verify", "--json")
    assert applied.code == 4, applied.text
    assert "stale" in statuses(applied.document, "gpu02")
    assert statuses(applied.document, "gpu01") == {"done"}
    modes = [run["mode"] for run in json.loads(site.remedy("history", "--json").stdout)["runs"]]
    assert modes == ["plan", "rehearsal", "rehearsal", "apply"]
    assert site.remedy("audit verify").code == 0

    # A rollback that meets somebody's change leaves the host alone.
    cluster.host("gpu01").must(
        "sed -i '/gpu03/d' /etc/hosts; echo 10.8.8.8 another-fix >>/etc/hosts"
    )
    back = site.remedy("rollback", applied.document["run"], "--yes", "--limit", "gpu01")
    assert back.code == 4, back.text
    assert "/etc/hosts was changed since run" in back.stdout
    assert "another-fix" in cluster.run("gpu01", "cat /etc/hosts").stdout
