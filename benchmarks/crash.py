"""Crash a run at every boundary, run the next command, and tell what was reached.

    python -m benchmarks.crash [PART...]     parts: steps disks controller cuts power; as root

Every point is one run that dies, and one ``apply`` or ``rollback`` after it. The table of all points goes to
``results/crash-sweep.json``, what it sums up to into ``results/crash-sweep.md``; parts that are not run keep
their last result. The exit status is 1 where any point is not good.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.crashes.bench import Outcome
from benchmarks.crashes.hosts import Sweep
from benchmarks.crashes.steps import full_disks, killed
from benchmarks.harness.cluster import Cluster

RESULTS = Path(__file__).parent / "results"
HOSTS = 2
CUTS, POWERS = 30, 16


def on_hosts(part: Callable[[Sweep], Iterator[Outcome]]) -> Iterator[Outcome]:
    """Run a part on lab hosts of its own."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(HOSTS, Path(folder))
        try:
            cluster.up()
            yield from part(Sweep(cluster))
        finally:
            cluster.down()


def in_a_folder(part: Callable[[Path], Iterator[Outcome]]) -> Iterator[Outcome]:
    """Run a part in a folder that plays a host."""
    with tempfile.TemporaryDirectory() as folder:
        yield from part(Path(folder))


PARTS: dict[str, Callable[[], Iterator[Outcome]]] = {
    "steps": lambda: in_a_folder(killed),
    "disks": lambda: in_a_folder(full_disks),
    "controller": lambda: on_hosts(Sweep.controllers),
    "cuts": lambda: on_hosts(lambda sweep: sweep.cuts(CUTS)),
    "power": lambda: on_hosts(lambda sweep: sweep.powers(POWERS)),
}


def summary(outcomes: Iterable[Outcome]) -> str:
    """Return the table: one line for each kind of crash and what came after it."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault((one.kind, one.next), []).append(one)
    lines = [
        "| what crashed | then | points | state reached | half-written till then | lines lost | left behind |",
        "|---|---|---|---|---|---|---|",
    ]
    every = [one for group in groups.values() for one in group]
    for (kind, after), group in [*groups.items(), (("all", ""), every)]:
        reached = sum(one.reached for one in group)
        half = sum(len(one.half) for one in group)
        lost = sum(one.lost for one in group)
        left = sum(len(one.left) for one in group)
        lines.append(f"| {kind} | {after} | {len(group)} | {reached} | {half} | {lost} | {left} |")
    return "\n".join(lines)


def write_summary(kept: dict[str, list[dict[str, Any]]]) -> list[Outcome]:
    """Write the table of all parts that were run so far; return their points."""
    every = [
        Outcome(**{**one, "half": tuple(one["half"]), "left": tuple(one["left"])})
        for name in PARTS
        for one in kept.get(name, [])
    ]
    text = (
        "# Crash sweep\n\nMade by `python -m benchmarks.crash`; each point is in `crash-sweep.json`. A point\n"
        "is one run that is crashed there, and the command after it, which has to reach the wanted state\n"
        "(apply) or the former one (rollback). A file that has a second name (a hard link) cannot be replaced\n"
        "by a rename: it alone can be half-written until the next run, which completes it.\n\n"
    )
    (RESULTS / "crash-sweep.md").write_text(f"{text}{summary(every)}\n", encoding="utf-8")
    return every


def main() -> None:
    """Run the parts that are asked for, and write the tables."""
    chosen = sys.argv[1:] or list(PARTS)
    path = RESULTS / "crash-sweep.json"
    kept: dict[str, list[dict[str, Any]]] = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    )
    every: list[Outcome] = []
    for name in chosen:
        found = []
        for one in PARTS[name]():
            found.append(one)
            print("." if one.good else f"\n{one}", end="", flush=True)
        kept[name] = [asdict(one) for one in found]
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        every = write_summary(kept)
    print(f"\n{summary(every)}")
    sys.exit(0 if all(one.good for one in every) else 1)


if __name__ == "__main__":
    main()
