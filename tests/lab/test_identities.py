"""Machines at other addresses than the inventory says: the operator is asked, and --yes does not answer."""

from __future__ import annotations

import json

import pytest

from remedy.lab.faults import fault
from remedy.lab.host import Host
from tests.lab.conftest import Cluster
from tests.lab.site import COMMAND, RemedyOutput, Site
from tests.lab.terminal import on_a_terminal

pytestmark = pytest.mark.lab

APPLY = ("--no-verify", "--json")
QUESTION = "Is the inventory right, and are the machines to be changed?"


@fault("called-like-a-peer", "the host carries the name of the first of its peers")
def called_like_a_peer(host: Host) -> None:
    name = host.peers[0].name
    host.must(["hostname", name])
    host.write("/etc/hostname", f"{name}\n".encode())


def right(cluster: Cluster) -> Site:
    """Return a site whose machines are what its inventory calls them."""
    site = Site(cluster)
    applied = site.remedy("apply", "--yes", *APPLY)
    assert applied.code == 0, applied.text
    return site


def identities(output: RemedyOutput) -> dict[str, str]:
    return {
        name: finding["title"]
        for name, host in output.document["hosts"].items()
        for finding in host["findings"]
        if finding["remedy"] == "identity"
    }


def test_swapped_addresses_are_a_question_and_never_a_change_like_others(cluster: Cluster) -> None:
    site = right(cluster)
    names = site.all_names()
    at = {host.name: host for host in cluster.lab.record().hosts}
    run = json.loads(site.remedy("history", "--json").stdout)["runs"][0]["run"]
    swapped = {
        a: {"ssh_hostname": at[b].management_address, "cluster_address": at[b].cluster_address}
        for a, b in (("gpu01", "gpu02"), ("gpu02", "gpu01"))
    }
    site.edit_inventory(swapped)
    checked = site.remedy("check", "--json")
    assert {"gpu01", "gpu02"} == set(identities(checked))
    assert "gpu01, gpu02 are swapped" in identities(checked)["gpu01"]
    assert checked.code == 4
    # Each command that acts on the hosts says so, with both ways out, and in how it ends.
    (site.folder / "log").write_text(
        "RuntimeError: Unable to resolve hostname to a (local) address"
    )
    for command, code in (
        (site.command("verify"), 4),
        (site.command("apply", "--rehearse"), 4),
        (site.command("rollback", run, "--yes"), 4),
        (["remedy", "diagnose", str(site.folder / "log"), "--inventory", str(site.inventory)], 0),
    ):
        done = site.run(str(COMMAND), *command[1:])
        assert done.code == code, done.text
        assert "gpu01, gpu02 are swapped" in done.text
        assert "Or the machine is to become gpu0" in done.text
    refused = site.remedy("apply", "--yes", "--no-verify")
    assert refused.code == 4
    assert "at the addresses of gpu[01-02] answer the machines of other entries" in refused.text
    assert "Correct the addresses in the inventory" in refused.text
    asked = on_a_terminal(site.command("apply", "--no-verify"), [(QUESTION, "n")])
    assert asked.code == 4
    assert "swap those of gpu" in asked.text
    assert site.all_names() == names
    # Where the operator says so the machines do change places, and the next run has nothing to ask.
    agreed = on_a_terminal(
        site.command("apply", "--no-verify"), [(QUESTION, "y"), ("Change 4 hosts?", "y")]
    )
    assert agreed.code == 0, agreed.text
    assert (site.names("gpu01").running, site.names("gpu02").running) == ("gpu02", "gpu01")
    again = site.remedy("apply", "--yes", *APPLY)
    assert (again.code, identities(again)) == (0, {}), again.text


@pytest.mark.full
def test_another_entrys_name_asks_and_hosts_that_are_missing_are_in_the_question(
    cluster: Cluster,
) -> None:
    site = right(cluster)
    cluster.fault("gpu02", "called-like-a-peer")
    cluster.replace("gpu01")
    cluster.fault("gpu03", "node-lost")
    refused = site.remedy("apply", "--yes", "--no-verify")
    assert refused.code == 4
    assert "at the address of gpu02" in refused.text
    assert "answers the machine of gpu01" in refused.text
    asked = on_a_terminal(
        site.command("apply", "--no-verify"),
        [(QUESTION, "y"), ("Change 1 host, 1 not reachable, 1 with a CHANGED key?", "n")],
    )
    assert asked.code == 4
    before = asked.text.partition("Is the inventory right")[0]
    assert "the ssh host key has CHANGED" in before
    assert "gpu03" in before
    assert site.names("gpu02").running == "gpu01"
    agreed = on_a_terminal(
        site.command("apply", "--no-verify"),
        [(QUESTION, "y"), ("Change 1 host, 1 not reachable, 1 with a CHANGED key?", "y")],
    )
    assert "not all      1 not reachable, 1 with a CHANGED key: nothing is known" in agreed.text
    # What was shown with the plan is named once more, and not repeated.
    assert "unreachable gpu[01,03]" in agreed.text.rpartition("[y/N]")[2].partition("not all ")[0]
    assert site.names("gpu02").running == "gpu02"


@pytest.mark.full
def test_a_clone_that_carries_the_name_of_a_machine_at_its_place_is_renamed(
    cluster: Cluster,
) -> None:
    site = right(cluster)
    cluster.fault("gpu02", "called-like-a-peer")
    applied = site.remedy("apply", "--yes", *APPLY)
    assert applied.code == 0, applied.text
    site.assert_right()


def test_a_host_that_cannot_be_read_is_left_out_of_a_plan_file_until_the_run_is_resumed(
    cluster: Cluster,
) -> None:
    """Its key changes between the plan and its apply: nothing is tried there, whoever answers later."""
    site = Site(cluster)
    two, plan = ("--limit", "gpu[01-02]"), str(site.folder / "plan.json")
    assert site.remedy("plan", *two, "-o", plan).code == 0
    cluster.host("gpu02").must("rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh")
    applied = site.remedy("apply", *two, "--plan", plan, "--yes", "--no-verify")
    assert applied.code == 4
    assert "Changing 1 host " in applied.stderr
    assert "not all      1 with a CHANGED key" in applied.stdout
    run = json.loads(site.remedy("history", "--json").stdout)["runs"][-1]["run"]
    assert "gpu02: the run did not come to it" in site.show(run).text
    assert site.remedy("trust", "--replace", "gpu02", "--yes").code == 0
    resumed = site.remedy("apply", "--resume", run, *two, "--yes", "--no-verify")
    assert resumed.code == 0, resumed.text
    site.assert_right("gpu01", "gpu02", addresses=site.addresses())
    # Neither is anything taken back there, and the rest of a run is.
    site.run(str(COMMAND), "trust", str(site.inventory), "--replace", "gpu02", "--yes")
    cluster.host("gpu02").must("rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh")
    last = json.loads(site.remedy("history", "--json").stdout)["runs"][-1]["run"]
    back = site.remedy("rollback", last, *two, "--yes")
    assert back.code == 4, back.text
    assert "the ssh host key has CHANGED" in back.stdout
    assert "nothing was taken back" in back.stdout
    assert "1 host could not be read" in back.stdout
