"""What starts the ranks: what Slurm leaves is removed, and what kept a host from being started is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remedy.errors import LaunchError, RemedyError, UnreachableError
from remedy.report.culprits import culprit_lines
from remedy.runs.launch import CleanSteps, Launcher, ssh_launcher
from remedy.transport import Output, Root, Script
from remedy.transport.slurm import Steps
from remedy.verify.scripts import why_silent
from remedy.verify.verdict import Culprit, Verdict, not_launched

WHY = RemedyError("gpu02: its step 7.1 was cancelled", next_step="Run the command again.")
LAUNCHER = Launcher(lambda _: {}, "7", errors={"gpu02": WHY})


class Killed(Steps):
    """Steps of which one was killed."""

    def __init__(self, *, over: bool) -> None:
        super().__init__("7", {})
        self.over = over

    def __call__(self, scripts: Mapping[str, Script], /) -> dict[str, Output]:
        self.folders = {"gpu02": "/tmp/remedy-step-1 2"}
        if self.over:
            raise LaunchError("job 7 lost a node")
        return {name: Output(name) for name in scripts}


@pytest.mark.parametrize("over", [False, True])
def test_what_a_killed_step_left_is_removed_over_ssh_also_where_the_job_is_over(over: bool) -> None:
    cleaned: dict[str, Script] = {}

    def ssh(scripts: Mapping[str, Script], /) -> dict[str, Output]:
        cleaned.update(scripts)
        return {}

    run = CleanSteps(Killed(over=over), ssh)
    if over:
        with pytest.raises(LaunchError):
            run({"gpu02": Script("true", 5)})
    else:
        assert set(run({"gpu02": Script("true", 5)})) == {"gpu02"}
    assert cleaned["gpu02"].text == "rm -rf -- '/tmp/remedy-step-1 2'\n"
    assert cleaned["gpu02"].root is Root.PREFERRED
    assert run.steps.folders == {}


def verdict(*culprits: Culprit, possible: bool = True) -> Verdict:
    return Verdict(passed=False, possible=possible, reason="x", culprits=culprits)


def test_a_host_that_was_not_started_is_told_of_with_what_to_do_about_that() -> None:
    step = "remedy apply inventory.py --limit gpu02"
    accused = Culprit(
        name="gpu02", hosts=("gpu02",), reason=f"no part: {WHY.message}", next_step=step
    )
    other = Culprit(name="gpu02", hosts=("gpu02",), reason="gpu02: closed port", next_step=step)
    steps = [one.next_step for one in LAUNCHER.with_steps(verdict(accused, other)).culprits]
    assert steps == [WHY.next_step, step]


def test_a_host_that_went_out_of_reach_of_ssh_comes_with_where_to_look() -> None:
    stuck = UnreachableError(
        "gpu02 (10.0.0.2:22): stuck in the stage 'channel'", next_step="On its console: PAM?"
    )
    slow = RemedyError("gpu03: timed out", next_step="Check the host's load.")
    outputs = {"gpu02": Output("gpu02", error=stuck), "gpu03": Output("gpu03", error=slow)}
    launcher = ssh_launcher(lambda _: outputs)
    launcher.run({})
    assert why_silent(outputs["gpu02"]) == "stuck in the stage 'channel'"
    step = "remedy verify inventory.py --explain"
    accused = [
        Culprit(name=name, hosts=(name,), reason=f"{name}: {why_silent(output)}", next_step=step)
        for name, output in outputs.items()
    ]
    steps = [culprit.next_step for culprit in launcher.with_steps(verdict(*accused)).culprits]
    assert steps == [stuck.next_step, step]


def test_where_no_host_could_be_started_the_first_reason_stands_for_all() -> None:
    (culprit,) = LAUNCHER.with_steps(verdict(possible=False)).culprits
    assert (culprit.reason, culprit.next_step) == (WHY.message, WHY.next_step)
    assert Launcher(lambda _: {}).with_steps(verdict(possible=False)).culprits == ()


def test_the_end_of_the_job_accuses_no_host() -> None:
    ended = not_launched(["gpu01", "gpu02"], "job 7 lost a node", "sinfo -R")
    assert {host.outcome for host in ended.outcomes} == {"not-tested"}
    assert not ended.possible
    lines = [line.plain for line in culprit_lines(ended)]
    assert lines == ["      sinfo -R"], "the reason stands above"
