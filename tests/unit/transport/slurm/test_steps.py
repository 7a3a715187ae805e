"""Steps from their start to their end: with an srun that runs here what it is asked to run on a node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from remedy.errors import LaunchError
from remedy.transport.script import HostEvent, Output, Script
from remedy.transport.slurm import Steps, steps
from remedy.transport.slurm.command import StepMark, step_environment

READ_WORDS = """\
#!/bin/sh
printf '%s\\n' "$*" >>"$CALLS"
for word; do
  case $word in --nodelist=*) node=${word#*=} ;; --jobid=*) job=${word#*=} ;; esac
done
while [ $# -gt 3 ]; do shift; done
"""
RUNS = 'export SLURM_JOB_ID=$job SLURM_STEP_ID=3 SLURMD_NODENAME=$node\nexec "$@"\n'


class Site:
    """A folder with an srun, and one for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.temporary = folder / "bin", folder / "tmp"
        self.calls = folder / "calls"
        for place in (self.bin, self.temporary):
            place.mkdir()
        self.srun(RUNS)
        self.state = "RUNNING"
        self.events: list[HostEvent] = []

    def srun(self, text: str) -> None:
        """Say what srun does once it knows ``$node`` and ``$job``, and has ``sh -c TASK`` as its words."""
        (self.bin / "srun").write_text(READ_WORDS + text)
        (self.bin / "srun").chmod(0o755)

    def steps(self) -> Steps:
        def ask(_: Sequence[str]) -> tuple[int, str, str]:
            return 0, f"{self.state} 0 n1\n", ""

        return Steps("7", {"gpu01": "n1", "gpu02": "n2"}, self.events.append, ask)

    def run(self, text: str, deadline: float = 20.0) -> Output:
        return self.steps()({"gpu01": Script(text, deadline)})["gpu01"]

    def left(self) -> list[str]:
        return [path.name for path in self.temporary.iterdir()]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(made.calls))
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    monkeypatch.setattr(steps, "ENDING_SECONDS", (0.3, 0.5, 1.0))
    return made


def test_each_host_gets_its_script_on_its_node_and_answers_with_its_own_words(site: Site) -> None:
    site.srun("echo greeting; echo warning >&2\n" + RUNS)
    scripts = {
        name: Script(f"echo {name} on $SLURMD_NODENAME; echo oops >&2; exit {code}\n", 20)
        for name, code in {"gpu01": 0, "gpu02": 5}.items()
    }
    outputs = site.steps()({**scripts, "gpu09": Script("true", 5)})
    assert [outputs[name].stdout for name in scripts] == ["gpu01 on n1", "gpu02 on n2"]
    assert [outputs[name].exit_code for name in scripts] == [0, 5]
    assert {outputs[name].stderr for name in scripts} == {"oops"}
    assert outputs["gpu09"].error is not None
    assert site.left() == []
    assert "--immediate=60" in site.calls.read_text()
    stages = [event.stage for event in site.events if event.host == "gpu01"]
    assert stages == ["starting a step", "running", "answered"]


def test_long_texts_go_both_ways(site: Site) -> None:
    output = site.run("cat <<'END'\n" + "x" * 300_000 + "\nEND\nprintf %0100000d 1 >&2\n")
    assert len(output.stdout) == 300_000
    assert len(output.stderr) == 100_000


def test_a_script_that_is_late_is_ended_by_its_node(site: Site) -> None:
    output = site.run("sleep 30\n", deadline=1.0)
    assert output.error is not None
    assert "was not over on the node n1 after 1 s" in output.error.message
    assert output.seconds < 10
    assert site.left() == []


def test_temporary_files_of_a_step_that_was_killed_can_be_found(site: Site) -> None:
    site.srun(RUNS.replace("exec ", "setsid ") + "exit 137\n")
    runner = site.steps()
    script = 'touch "$TMPDIR/left"; kill -9 $(ps -o sid= $$)\n'
    output = runner({"gpu01": Script(script, 20)})["gpu01"]
    assert output.error is not None
    assert "did not run the script" in output.error.message
    assert runner.errors["gpu01"] is output.error
    (folder,) = site.temporary.iterdir()
    assert runner.folders == {"gpu01": str(folder)}
    assert (folder / "left").exists()


def interrupt_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Ctrl-C come when a file is there."""

    def check(*_: object) -> None:
        if path.exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(steps._Step, "check", check)


def test_what_runs_ends_in_good_order_when_nobody_listens_any_more(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(Path(f"{site.calls}.ready"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        site.run(
            "trap 'echo cleaned >\"$CALLS.end\"; exit' TERM\nsleep 60 &\necho >$CALLS.ready\nwait\n"
        )
    assert _within(5, lambda: Path(f"{site.calls}.end").exists())
    assert _within(5, lambda: not site.left())


def test_a_step_that_has_not_begun_is_not_left_waiting(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.srun(
        "trap 'echo ended >\"$CALLS.end\"; exit 1' TERM\necho >$CALLS.ready\n"
        "for _ in $(seq 300); do sleep 0.1; done\n"
    )
    interrupt_at(Path(f"{site.calls}.ready"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        site.run("true")
    assert _within(5, lambda: Path(f"{site.calls}.end").exists())


def test_an_srun_that_hangs_is_given_up_and_ended(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "START_SECONDS", 0.5)
    site.srun(
        "trap '' TERM\necho 'srun: Job step creation disabled' >&2\nfor _ in $(seq 300); do sleep 0.1; done\n"
    )
    output = site.run("true")
    assert output.error is not None
    assert "Slurm began no step on the node n1 within" in output.error.message
    assert "Job step creation disabled" in output.error.message
    assert output.seconds < 8


def test_a_node_that_does_not_keep_its_deadline_is_given_up(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "PATIENCE", -5.0)
    site.srun(RUNS + "\n")
    output = site.run("trap '' TERM; for _ in $(seq 300); do sleep 0.1; done\n", deadline=1.0)
    assert output.error is not None
    assert "the step 7.3 on the node n1 was not over" in output.error.message


def test_a_step_somewhere_else_than_asked_is_no_answer(site: Site) -> None:
    site.srun(RUNS.replace("$node", "n9"))
    output = site.run("echo here\n")
    assert output.error is not None
    assert "ran as 7.3 on n9" in output.error.message


def test_a_flood_ends_that_host_alone(site: Site) -> None:
    scripts = {"gpu01": Script("yes\n", 20), "gpu02": Script("echo fine\n", 20)}
    outputs = site.steps()(scripts)
    assert outputs["gpu01"].error is not None
    assert "printed more than" in outputs["gpu01"].error.message
    assert (outputs["gpu02"].stdout, outputs["gpu02"].error) == ("fine", None)


def test_where_the_job_is_over_no_host_is_judged(site: Site) -> None:
    site.srun("echo 'srun: error: Node failure on n1' >&2\nexit 1\n")
    assert "failed while" in str(site.run("true").error)
    site.state = "NODE_FAIL"
    with pytest.raises(LaunchError, match="lost a node"):
        site.run("true")


def test_what_people_set_for_their_own_steps_is_not_passed_on() -> None:
    kept = {
        "PATH": "/bin",
        "SLURM_JOB_ID": "7",
        "SLURM_CONF": "/etc/slurm.conf",
        "NCCL_DEBUG": "INFO",
    }
    unwanted = {
        "SLURM_LABELIO": "1",
        "SLURM_NTASKS_PER_NODE": "8",
        "SLURM_GRES": "gpu:1",
        "SLURM_MPI_TYPE": "pmix",
    }
    assert step_environment({**kept, **unwanted}) == kept


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"other 7.3 n1 /tmp/other",
        b"word 7.3 n1 /etc",
        b"word 7 n1 /tmp/word",
        b"word 7.3 n1 tmp/word",
        b"word 7.3 n1 /tmp/word/..",
    ],
)
def test_only_the_folder_of_this_step_is_ever_taken_for_it(noise: bytes) -> None:
    assert StepMark("word").read(b"greeting\n" + noise + b"\n") is None


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()
