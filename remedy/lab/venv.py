"""The environment with torch, or a like framework, that every host gets, read-only and at the same path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import LabError

VARIABLE = "REMEDY_LAB_VENV"

# Run with -I, so that neither the folder it runs in nor PYTHONPATH lend it a torch.
_ASK = """
import importlib.util, json, sys
print(json.dumps({
    "torch": any(map(importlib.util.find_spec, ("torch", "paddle", "mindspore"))),
    "prefix": sys.prefix,
    "base": sys.base_prefix,
    "version": "%d.%d" % sys.version_info[:2],
}))
"""


@dataclass(frozen=True)
class Environment:
    """A Python environment with torch.

    Args:
        python: its interpreter, valid inside the hosts as well.
        binds: the folders that must be visible there.
    """

    python: str
    binds: tuple[str, ...]


def find(root: Path, *, foreign: bool = False) -> Environment | None:
    """Find the environment to bind: the one the user names, else the one remedy runs in.

    Returns:
        None where the environment remedy runs in has no torch, or does not run in the hosts.

    Raises:
        LabError: the user names one, and it has no torch.
    """
    named = os.environ.get(VARIABLE)
    python = Path(named) / "bin/python" if named else Path(sys.executable)
    answer = _ask(python)
    if answer is None or not answer["torch"]:
        if named:
            raise LabError(
                f"{VARIABLE} names {named}, and there is no Python with torch",
                next_step=f"Name a virtual environment that has torch, or unset {VARIABLE}.",
            )
        return None
    environment = plan(python, answer, root)
    if environment is None or (foreign and not _runs(environment, root)):
        return None
    return environment


def plan(python: Path, answer: dict[str, str], root: Path) -> Environment | None:
    """Work out which folders make an interpreter run inside a host.

    Returns:
        None where the interpreter belongs to this machine's system and the hosts have another.
    """
    prefix, base = answer["prefix"], answer["base"]
    binds: list[str] = []
    if base == "/usr":
        # The hosts have a /usr of their own, of the same release and so with the same Python.
        if prefix == base or not (root / f"usr/bin/python{answer['version']}").exists():
            return None
    else:
        binds += [base, str(Path(base).resolve())]
    if prefix != base:
        binds += [prefix, str(Path(prefix).resolve())]
    inside = str(python) if any(python.is_relative_to(bind) for bind in binds) else ""
    return Environment(inside or f"{prefix}/bin/python3", tuple(dict.fromkeys(binds)))


def _runs(environment: Environment, root: Path) -> bool:
    """Return whether an interpreter of this machine runs in hosts of another release.

    Their libraries may be too old for it.
    """
    command = [
        *("systemd-nspawn", "--quiet", "--keep-unit", "--register=no"),
        # The root stays as it is: folders to bind to are made above it.
        *("--volatile=overlay", f"--directory={root}"),
        *(f"--bind-ro={path}" for path in environment.binds),
        *("--", environment.python, "-c", ""),
    ]
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode == 0


def _ask(python: Path) -> dict[str, str] | None:
    """Ask an interpreter where it is and what it needs."""
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _ASK], check=True, capture_output=True, text=True, timeout=60
        )
        answer: dict[str, str] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return answer
