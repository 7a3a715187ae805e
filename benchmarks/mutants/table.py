"""The results as a table by rooms, and what survived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.mutants.draw import ROOMS, room_of
from benchmarks.mutants.operators import Mutant
from benchmarks.mutants.trial import Result

COSMETIC = "text"
"""The kind of change that takes a text away, of which many are in messages."""


def table(tried: Sequence[tuple[Mutant, Result]]) -> str:
    """Return the table: a line for each room, and one for all."""
    lines = [
        "| Room | Mutants | Killed | Survived | of these texts | Share killed |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for room in (*ROOMS, "all"):
        here = [pair for pair in tried if room in ("all", room_of(pair[0].path))]
        if here:
            survivors = [mutant for mutant, result in here if not result.dead]
            texts = sum(mutant.operator == COSMETIC for mutant in survivors)
            dead = len(here) - len(survivors)
            share = f"{100 * dead / len(here):.1f} %"
            lines.append(
                f"| {room} | {len(here)} | {dead} | {len(survivors)} | {texts} | {share} |"
            )
    return "\n".join(lines) + "\n"


def survivors(tried: Iterable[tuple[Mutant, Result]]) -> Iterator[str]:
    """Yield each mutant that no test noticed, as lines of a diff."""
    for mutant, result in sorted(tried, key=lambda pair: (pair[0].path, pair[0].line)):
        if not result.dead:
            head = f"{mutant.path}:{mutant.line} {mutant.operator} ({result.end}, {result.tests} tests)"
            yield f"{head}\n  - {mutant.before}\n  + {mutant.after}\n"
