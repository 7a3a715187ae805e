"""What journalling and receipts cost: the same apply with and without them, in turns, on lab hosts.

    python -m benchmarks.overhead [--hosts N] [--rounds N] [--no-write]      as root

Without them means: the controller writes no record, flushes nothing and keeps no plan, and the hosts
get neither receipts nor log lines, neither ``changes.json`` nor ``undo`` nor the journal's head, and flush
nothing before the first change. Pre-images are made in both variants, since the new contents are made from
them. The table goes to ``results/overhead.md``, unless ``--no-write`` is given.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.figures import Spread, ratio
from tests.crashes.hosts import APPLY, Site

RESULTS = Path(__file__).parent / "results" / "overhead.md"
VARIANTS = ("with", "without")


def bare(words: list[str]) -> None:
    """Run remedy without journal and receipts."""
    from remedy.apply import script
    from remedy.apply.carrier import Carrier
    from remedy.audit import Head, Journal, witness
    from remedy.cli.main import main as command
    from remedy.runs import gate

    def nothing(*_: Any, **__: Any) -> Head:
        return Head("", 0, "")

    Journal.write = nothing  # type: ignore[method-assign]
    Journal.__init__ = lambda *_, **__: None  # type: ignore[method-assign]
    gate.keep = nothing  # type: ignore[attr-defined,assignment]
    witness.words = lambda *_: ""
    Carrier.tell = nothing  # type: ignore[method-assign,assignment]
    script._by_hand = lambda *_: b""
    script._record = lambda *_: b""
    whole = script._library
    script._library = lambda *parts: f"{whole(*parts)}\nnote() {{ :; }}\nsettle() {{ :; }}\n"  # type: ignore[assignment]
    command(words)


def measure(site: Site, variant: str) -> float:
    """Return the seconds of one apply on hosts that need it; what must hold is checked after it."""
    site.fresh()
    words = [sys.executable, "-m", "benchmarks.overhead", f"--{variant}"]
    began = time.monotonic()
    code = site.start(*words, *APPLY).wait()
    seconds = time.monotonic() - began
    if code != 0:
        raise RuntimeError(f"the apply {variant} journal and receipts ended with {code}")
    has = site.hosts[0].run("cat /var/lib/remedy/runs/*/receipt.jsonl").stdout
    if bool(has) != (variant == "with"):
        raise RuntimeError(f"the variant {variant} is not what it says")
    return seconds


def main() -> None:
    """Measure both variants in turns, and write the table."""
    if sys.argv[1:2] in (["--with"], ["--without"]):
        if sys.argv[1] == "--without":
            bare(sys.argv[2:])
        else:
            from remedy.cli.main import main as command

            command(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-write", action="store_true", help="print the table only")
    chosen = parser.parse_args()
    taken: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(chosen.hosts, Path(folder))
        try:
            cluster.up()
            site = Site(cluster.lab, cluster.folder)
            site.keep("")
            for variant in VARIANTS:  # caches fill
                measure(site, variant)
            for number in range(chosen.rounds):
                for variant in VARIANTS if number % 2 == 0 else reversed(VARIANTS):
                    taken[variant].append(measure(site, variant))
        finally:
            cluster.down()
    spreads = {variant: Spread.of(rounds) for variant, rounds in taken.items()}
    times = ratio(taken["with"], taken["without"])
    lines = [
        "# What journal and receipts cost\n",
        (
            f"Made by `python -m benchmarks.overhead --hosts {chosen.hosts} --rounds {chosen.rounds}`, "
            f"{chosen.hosts} lab hosts on one machine.\nCommit {machine.commit()}, {machine.today()}; "
            f"{machine.describe()}; load {machine.load():.1f}.\n"
        ),
        "| apply | seconds | all rounds |",
        "|---|---|---|",
        *(
            f"| {variant} journal and receipts | {spreads[variant].text()} "
            f"| {', '.join(f'{seconds:.2f}' for seconds in taken[variant])} |"
            for variant in VARIANTS
        ),
        f"\nWith over without, round by round: {times.text()}.\n",
    ]
    if not chosen.no_write:
        RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
