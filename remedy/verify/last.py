"""The last verdict, kept beside the inventory, and what may be built on it.

A verdict holds for the host states that it was proved on. Where only a few hosts have changed since, and the
fingerprints of all others are the same, it is enough to test each changed host with a good partner of its own,
and then the fleet as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from remedy.files import kept_mode, make_folder, write_whole
from remedy.text import counted
from remedy.verify.verdict import Verdict

NAME = "verdict.json"


@dataclass(frozen=True)
class Increment:
    """What is left to be tested: each changed host with a partner of its own that was proved before."""

    pairs: tuple[tuple[str, str], ...]


def save(home: Path, verdict: Verdict) -> None:
    """Keep a verdict as the last one; a reader never sees half of it."""
    make_folder(home)
    write_whole(home / NAME, verdict.model_dump_json(indent=1), mode=kept_mode(home))


def load(home: Path) -> Verdict | str:
    """Read the last verdict, or return why there is none that can be used."""
    try:
        return Verdict.model_validate_json((home / NAME).read_bytes())
    except FileNotFoundError:
        return "nothing was verified here before"
    except (OSError, ValidationError) as error:
        return f"the last verdict cannot be read ({str(error).splitlines()[0]})"


@dataclass(frozen=True)
class Proved:
    """How a proof is to be made: by which engine and launcher, and whether of all hosts in one all-reduce."""

    engine: str
    launcher: str = "ssh"
    whole: bool = True


def increment(last: Verdict | str, now: Mapping[str, str], how: Proved) -> Increment | str:
    """Decide what is left to be tested.

    Args:
        last: the last verdict.
        now: the fingerprint of every host that takes part.
        how: the proof that is wanted.

    Returns:
        the tests, or why it has to be the whole ladder.
    """
    if isinstance(last, str):
        return last
    if last.engine != how.engine:
        return f"the last verdict is of the engine {last.engine}"
    if last.launcher != how.launcher:
        return f"the last verdict is of ranks that {last.launcher} started"
    if not last.passed:
        return "the last verification failed"
    if last.divided is not None and how.whole:
        return "the last verification was of groups of hosts"
    unchanged = [
        host for host, fingerprint in now.items() if last.fingerprints.get(host) == fingerprint
    ]
    changed = [host for host in now if host not in unchanged]
    if not changed:
        return "no host has changed since the last verification"
    if len(changed) > len(unchanged):
        have = "has" if len(changed) == 1 else "have"
        return f"{len(changed)} of {counted(len(now), 'host')} {have} changed since the last verification"
    # Neighbours share switches: a partner half the fleet away has seen more of the network.
    half = len(unchanged) // 2
    partners = [*unchanged[half:], *unchanged[:half]]
    return Increment(tuple(zip(changed, partners, strict=False)))
