"""How many tests, in how many rounds, it takes to name what is broken: remedy beside other searches.

    python -m benchmarks.isolation [--fleets N] [--no-write]

Nothing is measured on a machine: tests are counted in simulated fleets, so the table is the same anywhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import comb, log2
from pathlib import Path
from statistics import median

from benchmarks.harness import machine
from benchmarks.rivals import ALL, Search, remedy
from benchmarks.simulated import fleet
from remedy.verify.isolate.model import Fault

RESULTS = Path(__file__).parent / "results" / "isolation.md"
# What is broken: hosts, pairs.
CASES = ((0, 0), (1, 0), (5, 0), (8, 0), (0, 1), (3, 2))
SIZE = 232
# The share of tests that pass where they should fail, or fail where they should pass.
WRONG = 0.01


def as_found(fault: Fault) -> tuple[str, ...]:
    """A fault without its direction, which only remedy tells."""
    return tuple(sorted(fault.hosts))


def row(name: str, search: Search, nodes: int, pairs: int, fleets: int, telling: float = 0) -> str:
    """One line of a table: medians over the fleets, and how often the answer was right."""
    tests, rounds, named, false = [], [], 0, 0
    for seed in range(fleets):
        simulated = fleet(SIZE, nodes, pairs, seed=seed, telling=telling)
        answer, taken = search(simulated)
        truth = {as_found(fault) for fault in simulated.faults}
        accusations = {as_found(fault) for fault in answer}
        tests.append(simulated.tests)
        rounds.append(taken)
        named += len(truth & accusations)
        false += len(accusations - truth)
    faults = fleets * (nodes + pairs)
    share = f"{100 * named / faults:.0f} %" if faults else "-"
    return (
        f"| {name} | {median(tests):,.0f} | {max(tests):,} | {median(rounds):.0f} | {max(rounds)}"
        f" | {share} | {false / fleets:.2g} |"
    )


HEAD = (
    "| search | tests, median | most | rounds, median | most | faults named | falsely accused a fleet |\n"
    "|---|---|---|---|---|---|---|"
)


def comparison(fleets: int) -> Iterator[str]:
    """The tables for one size of fleet."""
    for nodes, pairs in CASES:
        what = f"broken hosts: {nodes}, broken pairs: {pairs}" if nodes + pairs else "all healthy"
        yield f"\n### {SIZE} hosts: {what}\n\n{HEAD}"
        for name, search in ALL.items():
            few = min(fleets, 3) if name.startswith("exhaustive") else fleets
            yield row(name, search, nodes, pairs, few)
        if nodes + pairs:
            yield row(
                "remedy, tests that say who is missing", remedy, nodes, pairs, fleets, telling=1
            )


def growth(fleets: int) -> Iterator[str]:
    """How the number of tests grows with the fleet and with what is broken in it."""
    sizes = (64, 128, 232, 512, 1024, 2048)
    yield "\n### Growth: median tests (rounds) of remedy, one bit a test\n"
    yield f"| broken hosts | {' | '.join(f'{size:,} hosts' for size in sizes)} |"
    yield f"|---|{'---|' * len(sizes)}"
    for nodes in (1, 2, 4, 8):
        cells = []
        for size in sizes:
            runs = []
            for seed in range(fleets):
                simulated = fleet(size, nodes, seed=seed)
                faults, rounds = remedy(simulated)
                assert faults == set(simulated.faults)
                runs.append((simulated.tests, rounds))
            tests, taken = (median(column) for column in zip(*runs, strict=True))
            floor = log2(comb(size, nodes))
            cells.append(f"{tests:.0f} ({taken:.0f}); floor {floor:.0f}")
        yield f"| {nodes} | {' | '.join(cells)} |"


def mistaken(fleets: int) -> Iterator[str]:
    """What becomes of an isolation in which some tests end the wrong way."""
    yield f"\n### {SIZE} hosts, {WRONG:.0%} of the tests end the wrong way\n"
    yield "| broken hosts | broken pairs | rounds, median | most | named | fleets with a false accusation |"
    yield "|---|---|---|---|---|---|"
    for nodes, pairs in CASES[1:]:
        rounds, named, false = [], 0, 0
        for seed in range(fleets):
            simulated = fleet(SIZE, nodes, pairs, seed=seed)
            simulated.wrong = WRONG
            faults, taken = remedy(simulated)
            truth = {as_found(fault) for fault in simulated.faults}
            accused = {as_found(fault) for fault in faults}
            rounds.append(taken)
            named += len(truth & accused)
            false += bool(accused - truth)
        share = named / (fleets * (nodes + pairs))
        yield (
            f"| {nodes} | {pairs} | {median(rounds):.0f} | {max(rounds)} | {share:.0%}"
            f" | {false / fleets:.0%} |"
        )


def main() -> None:
    """Count, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fleets", type=int, default=100, help="fleets a line")
    parser.add_argument("--no-write", action="store_true", help="print the tables only")
    options = parser.parse_args()
    fleets = options.fleets
    text = [
        "# Isolation: tests and rounds until what is broken is named",
        "",
        (
            f"Made by `python -m benchmarks.isolation --fleets {fleets}` on {machine.today()}, "
            f"commit {machine.commit()};"
        ),
        "simulated fleets with seeds from 0, so",
        "that every run gives these numbers. A test is one group of hosts that is started and judged; the",
        "tests of a round are of disjoint hosts and run at once. Confirmations, the final test of the rest,",
        "and the test that tells the directions of a pair apart are counted. Unless said otherwise a test",
        "yields one bit. Others are written from their published descriptions; exhaustive pairs run on three",
        "fleets. The floor is log2 of the number of sets that could be broken: no search with one-bit tests",
        "can have a lower median by much.",
        *comparison(fleets),
        *growth(max(5, fleets // 5)),
        *mistaken(fleets),
        "",
        "Half of the broken pairs are broken in one direction only. A fleet that fails is tested in halves",
        "first. Sixteen groups first would find hosts one to three rounds earlier, and a broken pair a round",
        "later: a host in 5 rounds by 29 tests, and a pair in 11 (13 at most) by 47. No search whose last test",
        "of a pair is that of the two alone takes fewer than 10 rounds for each of them, and each of the two",
        "has to be seen with all others besides. Several pairs are sought side by side where they show at the",
        "same time; the second of two mostly shows when the first search has let its hosts go.",
    ]
    if not options.no_write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
