"""A proof in groups over real hosts: racks side by side, then across; culprits are found inside their rack."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

# Stops every worker on a host before it can join: as a hang of its GPU or its driver would.
HANG = "while :; do pkill -STOP -f '[p]ython.* -u .*worker'; sleep 0.1; done"


@pytest.fixture
def site(new_cluster: Callable[..., Cluster], request: pytest.FixtureRequest) -> Site:
    """Right hosts in two racks, half of them in each; their ranks run the stub (docs/tests.md)."""
    made = Site(new_cluster(count=getattr(request, "param", 4)))
    made.run_on_stub()
    with made.inventory.open("a", encoding="utf-8") as file:
        file.write("rack1, rack2 = gpus[: len(gpus) // 2], gpus[len(gpus) // 2 :]\n")
    (made.folder / "remedy.yaml").write_text(
        "verify: {sizes: [8], deadline: 20, divide: rack*}\n", encoding="utf-8"
    )
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


def test_racks_sum_by_themselves_and_then_across(site: Site) -> None:
    one, two, three, four = site.cluster.hosts
    answer = site.remedy("verify", "--json")
    verdict = answer.document["verdict"]
    assert answer.code == 0, answer.text
    assert (verdict["world_size"], verdict["hosts"]) == (4, 4)
    divided = verdict["divided"]
    assert [part["hosts"] for part in divided["groups"]] == [[one, two], [three, four]]
    assert [part["hosts"] for part in divided["crossings"]] == [[one, three], [two, four]]
    assert {part["passed"] for part in divided["groups"] + divided["crossings"]} == {True}
    assert "not proved: all 4 hosts in one all-reduce, and 2 of 6 pairs" in verdict["reason"]
    assert divided["unproved"] in verdict["reason"]
    # What only the groups prove is no ground for less than the whole ladder later.
    whole = site.folder / "whole.yaml"
    whole.write_text("verify: {sizes: [8], deadline: 20}\n", encoding="utf-8")
    again = site.remedy("verify", "--incremental", "--spec", str(whole))
    assert again.code == 0
    assert "the whole ladder: the last verification was of groups of hosts" in again.text
    refused = site.remedy("verify", "--divide", "rack1")
    assert refused.code == 2
    assert f"{three[:-2]}[03-04] would be in no group" in refused.text


@pytest.mark.full
@pytest.mark.parametrize("site", [6], indirect=True)
def test_hosts_that_hang_in_two_racks_are_found_side_by_side(site: Site) -> None:
    hosts = site.cluster.hosts
    victims = {hosts[1], hosts[5]}
    for victim in victims:
        site.cluster.host(victim).must(["systemd-run", "--unit=hang", "sh", "-c", HANG])
    answer = site.remedy("verify", "--json", seconds=600)
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert {culprit["name"] for culprit in verdict["culprits"]} == victims
    ends = {entry["host"]: entry["outcome"] for entry in verdict["outcomes"]}
    assert ends == {**dict.fromkeys(hosts, "pass"), **dict.fromkeys(victims, "fail")}
    rungs = {rung["name"]: rung["passed"] for rung in verdict["rungs"]}
    assert (rungs["each group"], rungs["across groups"], rungs["isolation"]) == (False, None, True)
    # In one round groups of both racks were tested.
    first = {host for test in verdict["tests"] if test["round"] == 1 for host in test["hosts"]}
    assert first & set(hosts[:3])
    assert first & set(hosts[3:])


@pytest.mark.full
def test_one_host_that_hangs_is_told_from_its_only_neighbour(site: Site) -> None:
    """Two hosts cannot show which of them it is: hosts of the other rack are their partners."""
    hosts = site.cluster.hosts
    site.cluster.host(hosts[3]).must(["systemd-run", "--unit=hang", "sh", "-c", HANG])
    answer = site.remedy("verify", "--json", seconds=600)
    verdict = answer.document["verdict"]
    assert [culprit["name"] for culprit in verdict["culprits"]] == [hosts[3]], verdict["tests"]
    ends = {entry["host"]: entry["outcome"] for entry in verdict["outcomes"]}
    assert ends == {**dict.fromkeys(hosts, "pass"), hosts[3]: "fail"}
