"""What programs and people who type less use, on real hosts: the API, ``--only``, ``remedy facts``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
LOG = "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"


@pytest.fixture(scope="module")
def site(module_cluster: Cluster) -> Site:
    """Hosts of which one has two things wrong."""
    module_cluster.fault("gpu02", "loopback-name", "duplicate-hostname")
    site = Site(module_cluster)
    site.run_on_stub()
    (site.folder / "remedy.yaml").write_text("verify: {sizes: [8]}\n", encoding="utf-8")
    return site


def titles(document: dict[str, object]) -> set[tuple[str, str]]:
    plan = document["plan"]
    assert isinstance(plan, dict)
    return {(change["host"], change["remedy"]) for change in plan["changes"]}


def test_facts_are_those_of_the_hosts(site: Site) -> None:
    answer = site.remedy("facts", "kernel", "--json")
    assert answer.code == 0, answer.stderr
    hosts = answer.document["hosts"]
    assert set(hosts) == set(site.cluster.hosts)
    for name, facts in hosts.items():
        assert site.cluster.run(name, "uname -r").stdout.strip() in json.dumps(facts)
    folded = site.remedy("facts", "kernel")
    assert "gpu[01-04]" in folded.stdout


def test_only_what_is_chosen_is_planned_changed_and_looked_for_again(site: Site) -> None:
    everything = titles(site.remedy("plan", "--json").document)
    assert {("gpu02", "hosts_file"), ("gpu02", "hostname")} <= everything
    chosen = titles(site.remedy("plan", "--only", "hostname", "--json").document)
    assert chosen == {change for change in everything if change[1] == "hostname"}
    assert (
        titles(site.remedy("plan", "--skip", "hostname", "--json").document) == everything - chosen
    )
    done = site.remedy("apply", "--only", "hostname", "--yes", "--no-verify", "--json")
    assert (done.code, done.document["converged"]) == (0, True), done.stderr
    assert titles(site.remedy("plan", "--json").document) == everything - chosen


def test_changes_of_some_remedies_are_taken_back_and_the_rest_later(site: Site) -> None:
    site.cluster.fault("gpu04", "loopback-name", "duplicate-hostname")
    before = site.names("gpu04")
    done = site.remedy("apply", "--limit", "gpu04", "--yes", "--no-verify", "--json")
    assert done.code == 0, done.text
    run, right = done.document["run"], site.names("gpu04")
    assert {"hosts_file", "hostname"} <= {remedy for _, remedy in titles(done.document)}

    page = site.folder / "back.html"
    chosen = ("--only", "hosts_file", "--yes", "--limit", "gpu04")
    part = site.remedy("rollback", run, *chosen, "--html", str(page), "--json")
    assert (part.code, part.document["plan"]["only"]) == (0, ["hosts_file"]), part.text
    assert "what the run did by other remedies stays: hostname (" in part.stderr
    now = site.names("gpu04")
    assert (now.hosts, now.running, now.static) == (before.hosts, right.running, right.static)
    assert "take back: write the cluster" in page.read_text()
    assert "not all remedies: --only hosts_file" in site.show(part.document["run"]).stdout

    file, page = str(site.folder / "back.json"), site.folder / "plan.html"
    saving = ("--skip", "hosts_file", "-o", file, "--html", str(page), "--json")
    saved = site.remedy("rollback", run, "--limit", "gpu04", *saving)
    assert (saved.code, saved.document["plan"]["skip"]) == (0, ["hosts_file"]), saved.text
    assert saved.document["digest"] in page.read_text()
    mixed = site.remedy("rollback", run, "--plan", file, "--only", "hostname", "--yes")
    assert (mixed.code, "has its own remedies" in mixed.text) == (2, True)
    nothing = site.remedy("rollback", run, "--only", "docker_shm", "--yes")
    assert (nothing.code, "made no change that this chooses" in nothing.text) == (2, True)
    rest = site.remedy("rollback", "latest", "--yes", "--limit", "gpu04")
    assert rest.code == 0, rest.text
    assert site.names("gpu04") == before
    again = site.remedy("rollback", "latest", "--yes")
    assert (again.code, "was taken back already" in again.text) == (2, True)


def test_a_choice_of_remedies_says_what_counts_beside_a_verdict_and_not_the_verdict(
    site: Site,
) -> None:
    whole = site.remedy("verify", "--json").document
    part = site.remedy("verify", "--only", "limits", "--json").document
    assert (whole["hosts"]["gpu04"]["status"], part["hosts"]["gpu04"]["status"]) == (
        "pending",
        "ok",
    )
    found = {finding["remedy"] for host in part["hosts"].values() for finding in host["findings"]}
    assert found <= {"limits"}
    assert part["verdict"]["passed"] is whole["verdict"]["passed"]
    assert part["plan"]["only"] == ["limits"]
    shown = site.show(part["run"]).stdout
    assert "not all remedies: --only limits" in shown
    assert site.remedy("apply", "--limit", "gpu04", "--yes", "--no-verify").code == 0


def test_the_example_of_the_page_about_the_api(site: Site) -> None:
    example = PAGE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    (site.folder / "train.log").write_text(LOG, encoding="utf-8")
    site.cluster.fault("gpu03", "loopback-name")
    done = site.run(
        "sh", "-c", 'cd "$1" && exec "$2" -c "$3"', "-", str(site.folder), sys.executable, example
    )
    assert done.code == 0, done.text
    lines = done.stdout.splitlines()
    assert any(line.startswith("gpu03 drift ") for line in lines)
    run = next(
        re.fullmatch(r"run (\S+) .*exit code 0", line) for line in lines if line.startswith("run ")
    )
    assert run is not None, done.text
    assert "proved" in lines
    assert lines[-1].startswith("master-port-in-use -> ")
    # What it did is on record as if it had been typed, and the hosts are right.
    assert f'"run":"{run[1]}"' in (site.folder / ".remedy" / "journal.jsonl").read_text(
        encoding="utf-8"
    )
    site.assert_right("gpu02", "gpu03")
    assert site.remedy("check", "--exit-code").code == 0
