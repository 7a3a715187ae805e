"""The job that remedy runs in: which it is, whose, and which of its nodes is which host."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from remedy.errors import LaunchError, UsageError
from remedy.inventory import Node
from remedy.transport.slurm import allocation
from remedy.transport.slurm.allocation import (
    COMMANDS,
    Allocation,
    SlurmNode,
    ended,
    outside,
    read_allocation,
    state_of,
)

SHOWN = (
    "NodeName=n1 Arch=x86_64 NodeAddr=10.0.0.1 NodeHostName=gpu01 State=MIXED+DRAIN Comment=State=IDLE\n"
    "NodeName=n2 NodeAddr=10.0.0.2 NodeHostName=gpu02.site State=ALLOCATED Reason=NodeAddr=10.9.9.9\n"
)


class Slurm:
    """Answers squeue and scontrol; squeue's answers come one after the other, the last one again and again."""

    def __init__(self, *jobs: str, error: str = "", shown: str = SHOWN) -> None:
        self.jobs = list(jobs)
        self.error = error
        self.shown = shown

    def __call__(self, command: Sequence[str]) -> tuple[int, str, str]:
        if command[0] == "scontrol":
            return (0, self.shown, "") if self.shown else (1, "", "scontrol: error: no nodes\n")
        job = self.jobs.pop(0) if len(self.jobs) > 1 else next(iter(self.jobs), "")
        return (1, "", self.error) if self.error else (0, job, "")


def mine(state: str = "RUNNING", nodes: str = "n[1-2]") -> str:
    return f"{state} {os.getuid()} {nodes}\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in COMMANDS:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return {"PATH": str(tmp_path), "SLURM_JOB_ID": "7"}


def test_the_nodes_are_what_slurm_says_and_not_what_people_wrote_of_them(
    environment: Mapping[str, str],
) -> None:
    job = read_allocation("inventory.py", environment, Slurm(mine()))
    first, second = job.nodes
    assert (job.job, first.state, second.address) == ("7", "MIXED+DRAIN", "10.0.0.2")
    assert job.notes == ("n1: Slurm has the node as MIXED+DRAIN",)


@pytest.mark.parametrize(
    ("changes", "slurm", "message", "step"),
    [
        ({"SLURM_JOB_ID": ""}, Slurm(mine()), "there is none here", "salloc"),
        ({"SLURM_JOB_ID": "7; reboot"}, Slurm(mine()), "there is none here", "salloc"),
        ({"PATH": "/nonexistent"}, Slurm(mine()), "needs srun, squeue, scontrol, scancel", "login"),
        (
            {},
            Slurm("RUNNING 4294967294 n1\n"),
            "belongs to the user with the id 4294967294",
            "as that",
        ),
        ({}, Slurm(""), "job 7 is not known to slurmctld", "salloc"),
        (
            {},
            Slurm(error="slurm_load_jobs error: Invalid job id specified\n"),
            "is not known",
            "salloc",
        ),
        ({}, Slurm(mine("TIMEOUT")), "job 7 came to its time limit", "salloc --time"),
        ({}, Slurm(mine("NODE_FAIL")), "job 7 lost a node", "sinfo --list-reasons"),
        ({}, Slurm(mine("PENDING", "")), "job 7 has no nodes yet", "squeue --jobs=7"),
        ({}, Slurm(mine("SPECIAL_EXIT")), "job 7 is SPECIAL_EXIT", "scontrol show job 7"),
        (
            {},
            Slurm(error="Unable to contact slurm controller\n"),
            "does not answer",
            "scontrol ping",
        ),
        (
            {},
            Slurm(mine(), shown=""),
            "scontrol does not show its nodes: scontrol: error: no n",
            "n[1-2]",
        ),
    ],
)
def test_where_no_ranks_can_be_started_it_says_why_and_what_to_do(
    environment: dict[str, str], changes: dict[str, str], slurm: Slurm, message: str, step: str
) -> None:
    with pytest.raises((UsageError, LaunchError)) as caught:
        read_allocation("inventory.py", {**environment, **changes}, slurm)
    assert message in caught.value.message
    assert step in caught.value.next_step


def test_a_job_that_is_ending_is_asked_until_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert (
        state_of("7", Slurm(mine("COMPLETING"), mine("COMPLETING"), mine("TIMEOUT"))) == "TIMEOUT"
    )
    monkeypatch.setattr(allocation, "ENDING_SECONDS", 0.0)
    assert "is ending" in ended("7", state_of("7", Slurm(mine("COMPLETING")))).message


def test_a_slurmctld_that_gives_no_answer_in_time_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocation, "SECONDS", 0.2)
    with pytest.raises(LaunchError, match=r"sleep gave no answer within"):
        allocation.ask_slurm(["sleep", "5"])
    with pytest.raises(LaunchError, match="cannot be run"):
        allocation.ask_slurm([str(tmp_path / "squeue")])


NODES = (
    SlurmNode("n1", "gpu01", "10.0.0.1"),
    SlurmNode("n2", "gpu02.site", "10.0.0.2"),
    SlurmNode("gpu03", "n3", "n3"),
    SlurmNode("n4", "n4", "10.0.0.4"),
)


def test_a_host_is_the_node_of_its_name_its_host_name_its_address_or_its_short_name() -> None:
    hosts = [
        Node("gpu03", "10.9.9.9"),
        Node("gpu01", "10.9.9.9"),
        Node("by-address", "10.0.0.4"),
        Node("gpu02.other", "10.9.9.9"),
        Node("gpu05", "10.9.9.9"),
    ]
    placement = Allocation("7", NODES).place(hosts)
    assert placement.nodes == {
        "gpu03": "gpu03",
        "gpu01": "n1",
        "by-address": "n4",
        "gpu02.other": "n2",
    }
    assert placement.strangers == ()
    assert Allocation("7", NODES).place(hosts[1:2]).strangers == ("n2", "gpu03", "n4")


def test_a_host_that_may_be_several_nodes_or_a_node_that_may_be_several_hosts_is_refused() -> None:
    twins = (SlurmNode("a.one", "", ""), SlurmNode("a.two", "", ""))
    with pytest.raises(UsageError, match=r"a is the host of 2 nodes of job 7: a\.one, a\.two"):
        Allocation("7", twins).place([Node("a", "10.9.9.9")])
    with pytest.raises(UsageError, match="n1 and gpu01 of the inventory are one node of job 7: n1"):
        Allocation("7", NODES).place([Node("n1", "10.9.9.9"), Node("gpu01", "10.9.9.9")])


def test_hosts_that_the_job_has_not_are_named_with_both_ways_out() -> None:
    placement = Allocation("7", NODES).place(
        [Node("gpu01", "x"), Node("gpu03", "x"), Node("b", "x")]
    )
    assert outside(placement, ["gpu01", "gpu03"], "7", "inventory.py") is None
    error = outside(placement, ["gpu01", "gpu03", "b"], "7", "inventory.py")
    assert error is not None
    assert error.message.startswith("b is not a node of job 7")
    assert "--limit gpu[01,03]" in error.next_step
    nobody = outside(placement, ["b", "c"], "7", "inventory.py")
    assert nobody is not None
    assert "are not nodes" in nobody.message
    assert nobody.next_step.startswith("Ask for them: salloc --exclusive --nodelist=")
