"""Plans and scripts: what each host is given, and that nothing in them can be run by accident."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from remedy.spec import VerifySpec
from remedy.spec.verify import PORTS
from remedy.verify.allreduce.plan import RankPlan, default_deadline, plan_ranks
from remedy.verify.allreduce.script import config, script, script_deadline
from remedy.verify.hosts import Participant
from remedy.verify.onhost.procs import endpoint
from remedy.verify.scripts import INTERPRETERS


def hosts(*gpus: int) -> list[Participant]:
    return [
        Participant(name=f"h{n}", address=f"10.0.0.{n + 1}", gpus=g) for n, g in enumerate(gpus)
    ]


def stub(tmp_path: Path, name: str, body: str) -> str:
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def run(plan: RankPlan, path: str, node: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-s"],
        input=script(plan, node),
        capture_output=True,
        text=True,
        timeout=30,
        env={"PATH": path, "HOME": "/nonexistent"},
        check=False,
    )


@pytest.mark.parametrize(
    ("gpus", "backend", "ranks"),
    [
        ((0, 0), "gloo", (1, 1)),
        ((8, 8), "nccl", (8, 8)),
        ((8, 4), "nccl", (8, 4)),
        ((8, 0), "auto", (1, 1)),
    ],
)
def test_one_rank_a_gpu_or_one_a_host(
    gpus: tuple[int, ...], backend: str, ranks: tuple[int, ...]
) -> None:
    plan = plan_ranks(hosts(*gpus))
    assert plan.backend == backend
    assert tuple(host.ranks for host in plan.hosts) == ranks
    assert plan.world == sum(ranks)
    assert len(plan.rank_hosts) == plan.world


def test_runs_differ_and_stay_off_the_ephemeral_ports() -> None:
    plans = [plan_ranks(hosts(0, 0)) for _ in range(200)]
    assert len({plan.nonce for plan in plans}) == 200
    assert {plan.port for plan in plans} <= set(PORTS)
    assert len({plan.port for plan in plans}) > 10
    assert max(PORTS) < 32768


def test_the_deadline_grows_with_the_fleet_and_the_script_outlasts_it() -> None:
    assert default_deadline(2) < default_deadline(64) < default_deadline(2048) <= 300
    plan = plan_ranks(hosts(0, 0), VerifySpec(deadline=20.0))
    host_config = config(plan, 0)
    assert plan.deadline == host_config["deadline"] == 20.0
    for part in ("join_seconds", "group_seconds", "sweep_seconds"):
        assert 0 < float(str(host_config[part])) < 20.0
    assert script_deadline(plan) > 20.0


@pytest.mark.parametrize(
    "bad", [{"port": 70000}, {"deadline": 1.0}, {"nonsense": 1}, {"sizes": (2,)}]
)
def test_the_spec_is_closed(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        VerifySpec(**bad)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "busybox"])
def test_the_script_is_posix_and_ascii(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    text = script(plan_ranks(hosts(0, 0)), 1)
    command = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
    subprocess.run(command, input=text.encode("ascii"), check=True, timeout=10)


def test_a_host_without_python_says_so(tmp_path: Path) -> None:
    plan = plan_ranks(
        [Participant(name=n, address="10.0.0.1", python="/nonexistent/python") for n in "ab"]
    )
    done = run(plan, str(tmp_path))
    assert done.stdout.startswith(f"REMEDY-VERIFY {plan.nonce} ")
    assert '"no-python"' in done.stdout
    assert done.returncode == 0


def test_an_interpreter_with_torch_is_preferred(tmp_path: Path) -> None:
    """The probe's answer decides, and an interpreter never reads the script itself."""
    stub(tmp_path, "python3", "case $1 in -c) cat; echo bare ;; *) echo wrong ;; esac")
    stub(
        tmp_path,
        "python",
        "case $1 in -c) cat; echo torch ;; *) echo right; cat >/dev/null ;; esac",
    )
    done = run(plan_ranks(hosts(0, 0)), f"{tmp_path}:/usr/bin:/bin")
    assert INTERPRETERS[:2] == ("python3", "python")
    assert done.stdout == "right\n"
    assert done.stderr == ""


def test_a_host_without_torch_says_so(tmp_path: Path) -> None:
    """A real interpreter that cannot see any package: the agent itself answers."""
    bare = stub(tmp_path, "bare", f'exec {sys.executable} -S -E "$@"')
    plan = plan_ranks([Participant(name=n, address="127.0.0.1", python=bare) for n in "ab"])
    done = run(plan, "/usr/bin:/bin")
    assert '"no-torch"' in done.stdout, done.stderr


@given(st.text(alphabet="ab '\"$`;&|\\\n(){}é~/", min_size=1, max_size=40))
def test_a_given_interpreter_is_never_run_as_shell(python: str) -> None:
    plan = plan_ranks([Participant(name=n, address="10.0.0.1", python=python) for n in "ab"])
    done = run(plan, "/nonexistent")
    assert '"no-python"' in done.stdout
    assert done.stderr == ""


@pytest.mark.skipif(sys.byteorder != "little", reason="the samples are from a little-endian kernel")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0100007F:0050", ("127.0.0.1", 80)),
        ("0000000000000000FFFF00000301000A:733C", ("10.0.1.3", 29500)),
        ("00000000000000000000000001000000:0016", ("::1", 22)),
    ],
)
def test_addresses_of_the_socket_table(text: str, expected: tuple[str, int]) -> None:
    assert endpoint(text) == expected
