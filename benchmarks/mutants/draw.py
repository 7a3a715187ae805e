"""The rooms, and a sample of their mutants that a seed decides."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.mutants.operators import Mutant, mutants_of

ROOMS = {
    "plan": "remedy/plan",
    "edit": "remedy/edit",
    "firewall": "remedy/firewall",
    "audit": "remedy/audit",
    "isolate": "remedy/verify/isolate",
    "deploys": "deploys",
}
"""The rooms whose mutants are drawn, and the folder of each."""


def room_of(path: str) -> str:
    """Return the room that a file belongs to."""
    return next(room for room, folder in ROOMS.items() if path.startswith(f"{folder}/"))


def files(root: Path, rooms: Iterable[str]) -> Iterator[Path]:
    """Yield the modules of some rooms."""
    for room in rooms:
        yield from sorted((root / ROOMS[room]).rglob("*.py"))


def draw(root: Path, rooms: Sequence[str], size: int, seed: int) -> list[Mutant]:
    """Return a sample: lines drawn evenly from all that can be changed, of each one of its mutants.

    So a room has a share of its size, and a line of a long message weighs as much as a comparison. A line's
    place in the draw depends on its own text and on the seed, not on the rest of the tree: while tests or other
    lines change, most of the sample stays.
    """
    lines: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    sources: dict[str, str] = {}
    for file in files(root, rooms):
        path = file.relative_to(root).as_posix()
        sources[path] = file.read_text(encoding="utf-8")
        for mutant in mutants_of(path, sources[path]):
            lines[path, sources[path].count("\n", 0, mutant.start)].append(mutant)
    order = sorted(lines.values(), key=lambda all_: _lot(seed, "line", all_[0]))
    sample: list[Mutant] = []
    for mutants in order:
        if len(sample) == size:
            break
        ranked = sorted(mutants, key=lambda mutant: _lot(seed, "mutant", mutant))
        chosen = next((m for m in ranked if _differs(sources[m.path], m)), None)
        if chosen is not None:
            sample.append(chosen)
    return sample


def _lot(seed: int, what: str, mutant: Mutant) -> tuple[bytes, int]:
    text = f"{seed}|{what}|{mutant.path}|{mutant.before}"
    if what == "mutant":
        text += f"|{mutant.operator}|{mutant.after}"
    return hashlib.sha256(text.encode()).digest(), mutant.start


def _differs(source: str, mutant: Mutant) -> bool:
    """Return whether a mutant is a program, and another one than before."""
    try:
        changed = ast.parse(mutant.apply(source))
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(source))
