"""Starting one srun for each host, all at once, and reading what they print until all have ended.

One loop serves the pipes of all of them. It ends a step that is late by degrees: its input ends, so that what
runs there cleans up; srun is asked to end the step, which kills it; scancel, and srun is killed.
"""

from __future__ import annotations

import os
import secrets
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import IO

from remedy.errors import RemedyError
from remedy.transport.script import HostEvent, Listener, Output, Script
from remedy.transport.slurm.allocation import RUNNING, Ask, ask_slurm, ended, state_of
from remedy.transport.slurm.command import StepMark, StepPlace, step_command, step_environment
from remedy.transport.slurm.failures import (
    explain_deadline,
    explain_elsewhere,
    explain_end,
    explain_hang,
    explain_late,
)
from remedy.transport.wrapper import KILL_AFTER, Flood, Marks, Stream

START_SECONDS = 60.0
"""For the first sign of a step: the prolog of a job runs before its first one."""

PATIENCE = 15.0
"""Beyond the deadline that the node keeps itself."""

ENDING_SECONDS = (10.0, 15.0, 10.0)
"""After the input's end, after srun was asked to end the step, and after both were killed."""

TICK = 0.25
_CHUNK = 1 << 15
# How timeout(1) ends where it had to end the script: by TERM, or by KILL.
_ENDED_LATE = (124, 137)


class Steps:
    """Runs scripts as steps of a job, one a host: a ``Run`` of the verification.

    Args:
        job: its id.
        nodes: NodeName by host.
        listener: hears of each host's stages.
        ask: asks slurmctld.

    Attributes:
        folders: of steps that were killed, by host: what they left on it.
        errors: the last error of each host whose step did not come to its end.
    """

    def __init__(
        self,
        job: str,
        nodes: Mapping[str, str],
        listener: Listener = lambda _: None,
        ask: Ask = ask_slurm,
    ) -> None:
        self.job = job
        self.nodes = nodes
        self._listen = listener
        self._ask = ask
        self.folders: dict[str, str] = {}
        self.errors: dict[str, RemedyError] = {}

    def __call__(self, scripts: Mapping[str, Script], /) -> dict[str, Output]:
        """Run each host's script in a step of its own, and return when all have ended.

        Raises:
            LaunchError: the job is over, so that no host can be judged by what came.
        """
        outputs = {
            name: Output(name, error=_absent(name, self.job))
            for name in scripts
            if name not in self.nodes
        }
        steps = [
            _Step(self.job, name, self.nodes[name], script, self._listen)
            for name, script in scripts.items()
            if name in self.nodes
        ]
        try:
            _serve(steps)
        finally:
            for step in steps:
                step.abandon()
        outputs |= {step.host: step.output() for step in steps}
        failed = [step for step in steps if step.error is not None]
        self.errors |= {step.host: step.error for step in failed if step.error is not None}
        self.folders = {step.host: step.folder for step in failed if step.folder}
        if failed:
            state = state_of(self.job, self._ask)
            if state != RUNNING:
                raise ended(self.job, state)
        return outputs


def _serve(steps: list[_Step]) -> None:
    """Serve the pipes of all steps until each of them has ended."""
    with selectors.DefaultSelector() as selector:
        for step in steps:
            step.start(selector)
        waiting = [step for step in steps if not step.is_over]
        checked = time.monotonic()
        while waiting:
            for key, _ in selector.select(TICK):
                key.data(key.fileobj)
            now = time.monotonic()
            if now - checked >= TICK or not selector.get_map():
                checked = now
                for step in waiting:
                    step.check(now)
                waiting = [step for step in waiting if not step.is_over]
                if waiting and not selector.get_map():
                    time.sleep(
                        TICK / 5
                    )  # all outputs have ended; a moment, until the programs have


class _Step:
    """One srun, from its start to its end.

    Args:
        job: its id.
        host: of the inventory.
        node: of Slurm.
        script: what it runs.
        listener: hears of its stages.
    """

    def __init__(self, job: str, host: str, node: str, script: Script, listener: Listener) -> None:
        self.job = job
        self.host = host
        self.node = node
        self.script = script
        self.error: RemedyError | None = None
        self.is_over = False
        self.step = ""
        self.folder = ""
        self._listen = listener
        self._marks = Marks()
        self._mark = StepMark(f"remedy-step-{secrets.token_hex(8)}")
        self._out = Stream(self._marks.shell, self._marks.script)
        self._err = Stream(self._marks.shell)
        self._input = script.text.encode()
        self._process: subprocess.Popen[bytes] | None = None
        self._selector: selectors.BaseSelector | None = None
        self._began = time.monotonic()
        self._limit = self._began + START_SECONDS
        self._force = self._forces()
        self._seconds = 0.0
        self._errors = ""
        self._code: int | None = None

    # -- beginning --------------------------------------------------------------------------------

    def start(self, selector: selectors.BaseSelector) -> None:
        """Start srun, and have its pipes served."""
        self._listen(HostEvent(self.host, "starting a step"))
        command = step_command(
            self.job, self.node, self.script, self._marks, self._mark, START_SECONDS
        )
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=step_environment(os.environ),
                # Ctrl-C of a terminal is for remedy, which has the ranks end in good order.
                start_new_session=True,
            )
        except OSError as error:
            self.error = RemedyError(
                f"{self.host}: srun cannot be started here: {error.strerror}",
                next_step="Too many processes or open files for this user? ulimit -u -n",
            )
            self._finish()
            return
        self._process = process
        self._selector = selector
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        selector.register(self._pipe(0), selectors.EVENT_WRITE, self._write)
        selector.register(self._pipe(1), selectors.EVENT_READ, self._read)
        selector.register(self._pipe(2), selectors.EVENT_READ, self._read)

    def _pipes(self) -> list[IO[bytes]]:
        process = self._process
        pipes = (process.stdin, process.stdout, process.stderr) if process is not None else ()
        return [pipe for pipe in pipes if pipe is not None]

    def _pipe(self, number: int) -> IO[bytes]:
        return self._pipes()[number]

    # -- while it runs ----------------------------------------------------------------------------

    def _write(self, pipe: IO[bytes]) -> None:
        """Write what srun takes; the pipe stays open when all is written."""
        try:
            self._input = self._input[os.write(pipe.fileno(), self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._input = b""  # srun is gone; what it printed says why
        if not self._input:
            self._forget(pipe)

    def _read(self, pipe: IO[bytes]) -> None:
        """Take what srun prints."""
        stream = self._out if pipe is self._pipe(1) else self._err
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._forget(pipe)
            return
        try:
            stream.take(chunk)
        except Flood as flood:
            self._forget(pipe)
            self._fail(RemedyError(f"{self.host}: {flood}", next_step="Check what it prints."))
        if not self.step and self._out.shell:
            self._begin()

    def _begin(self) -> None:
        """The step says which it is: from now on its own deadline counts."""
        place = self._mark.read(self._out.noise) or StepPlace("no step", "no node", "")
        self.step, self.folder = place.step, place.folder
        if place.step.partition(".")[0] != self.job or place.node != self.node:
            self._fail(explain_elsewhere(self.host, self.node, place.step, place.node))
            return
        seconds = self.script.deadline
        self._limit = time.monotonic() + seconds + KILL_AFTER + PATIENCE
        self._listen(HostEvent(self.host, "running", seconds=seconds))

    def check(self, now: float) -> None:
        """Notice srun's end, and end what is late by the next degree."""
        process = self._process
        if process is None:
            return
        open_pipes = self._selector is not None and any(
            pipe in self._selector.get_map() for pipe in self._pipes()[1:] if not pipe.closed
        )
        if process.poll() is not None and not open_pipes:
            self._finish()
        elif now > self._limit:
            self._late(now)

    def _late(self, now: float) -> None:
        if self.error is None and self.step:
            self.error = explain_hang(self.host, self.node, self.step, now - self._began)
        elif self.error is None:
            printed = f"{self._err.noise.decode(errors='replace')}\n{self._err.text}"
            self.error = explain_late(self.host, self.node, START_SECONDS, printed)
        try:
            self._limit = now + next(self._force)
        except StopIteration:
            self._finish()  # a process that not even KILL ends: of its end nothing depends

    def _fail(self, error: RemedyError) -> None:
        """Give the step up, by degrees."""
        self.error = self.error or error
        self._limit = 0.0

    def _forces(self) -> Iterator[float]:
        """End the step by degrees; yields the seconds that each of them may take."""
        assert self._process is not None
        soft, hard, kill = ENDING_SECONDS
        if self.step:
            self.release()
            yield soft
        self._process.terminate()
        yield hard
        if self.step:
            command = ["scancel", "--quiet", self.step]
            with suppress(OSError):
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        self._process.kill()
        yield kill

    # -- its end ----------------------------------------------------------------------------------

    def release(self) -> None:
        """End the step's input: what still runs there ends in good order."""
        if self._process is not None and self._process.stdin is not None:
            self._forget(self._process.stdin)
            with suppress(OSError):
                self._process.stdin.close()

    def abandon(self) -> None:
        """Let go of a step, whatever it does: one that runs ends in good order, and none begins any more."""
        self.release()
        if self._process is not None and not self.step and self._process.poll() is None:
            self._process.terminate()

    def _forget(self, pipe: IO[bytes]) -> None:
        if self._selector is not None and not pipe.closed:
            with suppress(KeyError, ValueError, RuntimeError):
                self._selector.unregister(pipe)

    def _finish(self) -> None:
        """Take the end: what remains open is closed, and what it means is put into words."""
        self.is_over = True
        self._seconds = time.monotonic() - self._began
        process = self._process
        self.release()
        for pipe in self._pipes():
            self._forget(pipe)
            with suppress(OSError):
                pipe.close()
        code = 0 if process is None else process.poll() or 0
        self._errors, self._code = self._mark.split_end(self._err.text)
        if self.error is None and self._code is None:
            printed = f"{self._err.noise.decode(errors='replace')}\n{self._errors}"
            self.error = explain_end(self.host, self.node, self.step, printed, max(0, -code))
        elif (
            self.error is None
            and self._code in _ENDED_LATE
            and self._seconds >= self.script.deadline
        ):
            self.error = explain_deadline(self.host, self.node, self.script.deadline)
        message = self.error.message if self.error else ""
        self._listen(HostEvent(self.host, "failed" if self.error else "answered", message))

    def output(self) -> Output:
        """Return what the step printed, and how it ended."""
        return Output(
            self.host,
            self._out.text if self._out.script else "",
            self._errors.strip(),
            None if self.error else self._code,
            self._seconds,
            self.error,
            time.time_ns(),
        )


def _absent(host: str, job: str) -> RemedyError:
    return RemedyError(
        f"{host}: no node of job {job}",
        next_step=f"Leave it out: --limit '*!{host}'. Or start a job that has it.",
    )
