"""Slurm starts the ranks: slurmctld and four slurmd in lab hosts, remedy in a job on the first of them.

Ranks run the stub of torch; what Slurm does with them does not depend on what they sum with.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator

import pytest

from tests.lab.conftest import clusters
from tests.lab.site import wait_for
from tests.lab.slurm_site import COMMAND, SlurmSite

pytestmark = [pytest.mark.lab, pytest.mark.full]

HOOK = "/opt/stub-torch/sitecustomize.py"
# Ranks that never come as far as their framework, and ranks that die.
STUCK = b"import os, time\nif 'RANK' in os.environ: time.sleep(600)\n"
DIES = b"import os, time\nif 'RANK' in os.environ: time.sleep(1); os.kill(os.getpid(), 9)\n"
HANGS = "verify: {sizes: [8], deadline: 60, reach: false, isolate: false}\n"
SHORT = HANGS.replace("60", "15")
GONE = 20.0  # seconds within which nothing of a proof is left on any host
WORKER = "pgrep -f '[w]orker.py' >/dev/null"


@pytest.fixture(scope="module")
def slurm(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmSite]:
    """Four hosts that are a Slurm cluster."""
    with clusters(tmp_path_factory.mktemp("slurm")) as make:
        site = SlurmSite(make(count=4, life="slurm"))
        if not site.cluster.lab.record().python:
            pytest.skip("no Python for the hosts: install the extra `torch`")
        site.install()
        yield site


@pytest.fixture
def site(slurm: SlurmSite) -> Iterator[SlurmSite]:
    """The same, as it was, with all nodes idle."""
    yield slurm
    slurm.settings("verify: {sizes: [8]}\n")
    for name in slurm.cluster.hosts:
        slurm.cluster.run(name, f"rm -f {HOOK}; pkill -CONT -x slurmd; systemctl start slurmd")
        slurm.login.run(f"scontrol update nodename={name} state=resume")
    idle = "sinfo --noheader --Node --format=%T | grep -vc idle"
    wait_for(lambda: slurm.login.run(idle).stdout.strip() == "0", 60)


def begin(site: SlurmSite, job: str = "--nodes=4") -> subprocess.Popen[str]:
    """Start a verification that hangs on one host, and return when ranks run on the others."""
    site.settings(HANGS)
    site.cluster.host("gpu03").write(HOOK, STUCK)
    started = site.start("verify", job=job)
    wait_for(
        lambda: all(not site.cluster.run(host, WORKER).returncode for host in site.cluster.hosts),
        60,
    )
    return started


def test_the_verdict_is_that_of_ssh_with_ranks_in_steps_of_the_job(site: SlurmSite) -> None:
    answers = [site.remedy("verify", "--json", launcher=launcher) for launcher in ("ssh", "slurm")]
    assert [answer.code for answer in answers] == [0, 0], answers
    ssh, slurm = (answer.document["verdict"] for answer in answers)
    same = ("passed", "world_size", "hosts", "sum_exact", "backend", "engine", "culprits")
    assert {key: ssh[key] for key in same} == {key: slurm[key] for key in same}
    ends = [{host["host"]: host["outcome"] for host in one["outcomes"]} for one in (ssh, slurm)]
    assert ends[0] == ends[1] == dict.fromkeys(site.cluster.hosts, "pass")
    assert [rung["name"] for rung in ssh["rungs"]] == [rung["name"] for rung in slurm["rungs"]]
    assert (ssh["launcher"], ssh["job"], slurm["launcher"]) == ("ssh", "", "slurm")
    assert slurm["reason"].endswith(f"started by Slurm in job {slurm['job']}")
    steps = {
        line.rpartition(" ")[2].partition(".")[0] for line in slurm["evidence"] if "step " in line
    }
    assert steps == {slurm["job"]}
    assert site.left() == {}


def test_apply_proves_its_changes_in_a_job_of_sbatch(site: SlurmSite) -> None:
    line = site.command("apply", "--yes", job="")
    done = site.login.run(
        f"cd /root; sbatch --quiet --wait --nodes=4 --output=out --wrap {shlex.quote(line)}; cat out"
    )
    assert "started by Slurm in job" in done.stdout, done.stdout
    assert "proved       4 ranks on 4 hosts" in done.stdout
    assert site.left() == {}


def test_hosts_outside_of_the_job_and_jobs_that_are_none_are_refused_before_anything_is_done(
    site: SlurmSite,
) -> None:
    output = site.remedy("verify", job="--nodes=3")
    assert output.code == 2
    assert "gpu04 is not a node of job" in output.text
    assert "--limit gpu[01-03]" in output.text
    output = site.remedy("verify", "--limit", "gpu[01-03]", job="--nodes=3")
    assert output.code == 0, output.text
    for command in ("verify", "apply"):
        output = site.remedy(command, job="")
        assert output.code == 2
        assert "SLURM_JOB_ID is not set" in output.text
        assert "salloc" in output.text
    output = site.remedy("verify", job="", before="SLURM_JOB_ID=99999")
    assert (output.code, "job 99999 is not known to slurmctld" in output.text) == (3, True)


def test_without_srun_it_is_said_where_remedy_has_to_run(site: SlurmSite) -> None:
    site.login.must(
        f"mkdir -p /root/no && ln -sf /usr/bin/* {COMMAND} /root/no/ && rm /root/no/srun"
    )
    output = site.remedy("verify", before="PATH=/root/no")
    assert output.code == 2
    assert "needs srun, not in the PATH" in output.text


def test_an_srun_that_hangs_is_given_up_and_ended(site: SlurmSite) -> None:
    site.login.must("mkdir -p /root/hang")
    site.login.write("/root/hang/srun", b"#!/bin/sh\nexec sleep 987\n")
    site.login.must("chmod 755 /root/hang/srun")
    output = site.remedy("verify", before="PATH=/root/hang:$PATH")
    assert output.code == 3
    assert "Slurm began no step on the node gpu01 within 60 s" in output.text
    assert "squeue --steps --nodelist=gpu01" in output.text
    assert site.login.run("pgrep -fx 'sleep 987'").stdout == ""


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("systemctl stop slurmd", "Communication connection failure"),
        ("pkill -STOP -x slurmd", "Socket timed out"),
    ],
)
def test_a_node_on_which_slurm_starts_nothing_is_named_with_what_to_look_at(
    site: SlurmSite, fault: str, why: str
) -> None:
    site.cluster.run("gpu03", fault)
    output = site.remedy("verify")
    assert output.code == 3
    assert f"Slurm cannot start a step on the node gpu03: {why}" in output.text
    assert "systemctl status slurmd" in output.text
    assert "gpu02:" not in output.text
    assert site.left() == {}


@pytest.mark.parametrize(
    ("hook", "reason"),
    [(DIES, "gpu03 was killed by SIGKILL"), (STUCK, "ranks [2] did not join")],
    ids=["dies", "never starts"],
)
def test_a_rank_that_dies_or_never_starts_is_named(
    site: SlurmSite, hook: bytes, reason: str
) -> None:
    site.settings(SHORT)
    site.cluster.host("gpu03").write(HOOK, hook)
    output = site.remedy("verify")
    assert output.code == 3
    assert "NOT PROVED   " in output.stdout
    assert "gpu03" in output.stdout.partition("NOT PROVED")[2].splitlines()[0]
    assert reason in output.text
    assert site.left() == {}


INTERRUPTIONS = {
    "Ctrl-C": ("pkill -INT -f '[i]mport main; sys.argv'", 130, ""),
    "kill -9 of remedy": ("pkill -KILL -f '[i]mport main; sys.argv'", None, ""),
    "kill -9 of every srun": ("pkill -KILL -x srun", 3, "srun was ended here by SIGKILL"),
    "scancel of the job": ("scancel $(squeue -h -o %i)", 3, "was cancelled"),
    "scancel of the steps": (
        "squeue --steps --noheader --format=%i | grep '[.][0-9]' | xargs -n 1 scancel",
        3,
        "was cancelled",
    ),
    "a node that fails": (
        "scontrol update nodename=gpu02 state=down reason=test",
        3,
        "lost a node",
    ),
}


@pytest.mark.parametrize("name", INTERRUPTIONS)
def test_whatever_ends_a_proof_nothing_of_it_is_left_on_any_host(
    site: SlurmSite, name: str
) -> None:
    what, code, words = INTERRUPTIONS[name]
    started = begin(site)
    assert set(site.left()) == set(site.cluster.hosts)
    site.login.run(what)
    printed, _ = started.communicate(timeout=120)
    wait_for(lambda: site.left() == {}, GONE)
    assert words in printed, printed
    if code is not None:
        assert started.returncode == code, printed
    wait_for(lambda: site.login.run("squeue --noheader").stdout == "", GONE)


def test_a_job_whose_time_is_up_accuses_nobody(site: SlurmSite) -> None:
    started = begin(site, "--nodes=4 --time=1")
    site.login.run("scontrol update jobid=$(squeue -h -o %i) endtime=now+1")
    printed, _ = started.communicate(timeout=150)
    assert started.returncode == 3, printed
    assert "NOT PROVED   not possible: job" in printed
    assert "salloc" in printed
    wait_for(lambda: site.left() == {}, GONE)
