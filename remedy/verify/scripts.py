"""How verification runs scripts on hosts: through one function, which it is given."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Protocol

from remedy.answers import silence
from remedy.transport import Output, Script

# Where torch is often found when the user's own ``python3`` has none; the first that has it is taken.
INTERPRETERS = (
    "python3",
    "python",
    '"$VIRTUAL_ENV/bin/python"',
    '"$CONDA_PREFIX/bin/python"',
    "/opt/conda/bin/python3",
    "/opt/miniconda3/bin/python3",
    "/opt/venv/bin/python3",
    "/usr/local/bin/python3",
    '"$HOME/miniconda3/bin/python3"',
    '"$HOME/anaconda3/bin/python3"',
    '"$HOME/.venv/bin/python3"',
)


class Run(Protocol):
    """Starts the script of each host at about the same time, and returns when all have ended."""

    def __call__(self, scripts: Mapping[str, Script], /) -> Mapping[str, Output]:
        """Run scripts by host name, as ``Transport.run`` does."""


def run_texts(run: Run, texts: Mapping[str, tuple[str, float]]) -> Mapping[str, Output]:
    """Run POSIX sh texts.

    Args:
        run: runs scripts on hosts.
        texts: by host name, each with the seconds after which the host ends it.
    """
    if not texts:
        return {}
    return run({host: Script(text, seconds) for host, (text, seconds) in texts.items()})


def why_silent(output: Output | None) -> str:
    """Say why a host gave no answer."""
    if output is None:
        return "nothing came back"
    return output.error.message if output.error else silence(output.stderr)


def interpreter_word(python: str) -> str:
    """Quote a named interpreter as a shell word; ``~/`` is the home folder, as in an interactive shell."""
    if python.startswith("~/"):
        return f'"$HOME"/{shlex.quote(python[2:])}'
    return shlex.quote(python)
