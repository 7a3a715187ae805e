"""Running a program that prints hosts: with a deadline, and without a terminal to ask at."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from remedy.errors import UsageError
from remedy.inventory.elsewhere.listing import LARGEST


@dataclass(frozen=True)
class Printed:
    """What a program printed; bytes that are no UTF-8 show as such."""

    code: int
    out: str
    err: str


def printed(
    arguments: Sequence[str], seconds: float, settings: Mapping[str, str] | None = None
) -> Printed:
    """Run a program, and return what it printed; whatever it started ends with it.

    Args:
        seconds: how long it may take.
        settings: for its environment.

    Raises:
        UsageError: it took too long.
        FileNotFoundError: there is no such program.
    """
    # Files and not pipes: a pipe stays open for as long as anything that the program started lives.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **(settings or {})},
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise UsageError(
                f"{arguments[0]} took more than {seconds} seconds",
                next_step=f"See what it waits for: {' '.join(arguments)}",
            ) from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(LARGEST).decode("utf-8", errors="replace"))
    return Printed(process.returncode, *texts)
