"""The step of Slurm that a rank says it is in."""

from __future__ import annotations

import pytest

from remedy.verify.onhost import procs


@pytest.fixture
def parents(monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
    """The command lines of our parents, each the child of the next; those that are not there are hidden."""
    lines = {30: b"sh\0-c\0", 20: b"slurmstepd: [7.3]", 10: b"/usr/sbin/slurmd\0-D\0"}
    monkeypatch.setenv("SLURM_JOB_ID", "9")
    monkeypatch.setenv("SLURM_STEP_ID", "1")
    monkeypatch.setattr("os.getppid", lambda: 30)
    monkeypatch.setattr(procs, "read", lambda path: lines.get(int(path.split("/")[2]), b""))
    above = {30: 20, 20: 10, 10: 1}
    monkeypatch.setattr(
        procs, "parent_and_state", lambda pid: (above[pid], "S") if pid in lines else (0, "")
    )
    return lines


@pytest.mark.usefixtures("parents")
def test_it_is_the_one_that_a_parent_carries_whatever_the_environment_says() -> None:
    assert procs.slurm_step() == "7.3"


def test_an_environment_alone_is_no_step(
    parents: dict[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    parents[20] = b"/usr/sbin/sshd\0"
    assert procs.slurm_step() == ""
    parents[20] = b"slurmstepd: [7.3]"
    monkeypatch.delenv("SLURM_STEP_ID")
    assert procs.slurm_step() == ""


def test_where_other_processes_are_hidden_it_is_the_environment_that_counts(
    parents: dict[int, bytes],
) -> None:
    del parents[20]
    assert procs.slurm_step() == "9.1"
