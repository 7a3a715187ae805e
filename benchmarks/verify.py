"""How long verification takes: with faults, of reachability alone, and beside torchrun by hand.

    python -m benchmarks.verify PART...

Each part boots lab hosts of its own; its figures replace its last ones in results/verify.json and
results/verify.md. Needs Linux, root, and the environment that remedy is installed in, with torch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.figures import Goal, Spread
from benchmarks.harness.run import BenchmarkError
from benchmarks.verifying.parts import PARTS, Part
from remedy.errors import RemedyError
from remedy.lab.paths import NAME_VARIABLE

RESULTS = Path(__file__).parent / "results"
SCHEMA = "remedy.benchmark/1"
HEAD = """\
# Verification: how long it takes

Each part was measured by the command beside it, on lab hosts that were made for it on one machine: all of
their processes share its cores. Figures are medians (lowest-highest) of the rounds. No docker, firewalld or
other daemon that is slow to ask runs on these hosts.
"""


def main() -> int:
    """Measure, print, write; return 1 when a goal was missed, 2 when nothing could be measured."""
    options = _options()
    os.environ.setdefault(NAME_VARIABLE, "bench")
    missed = 0
    for name in options.parts:
        measure, hosts = PARTS[name]
        load = machine.load()
        with tempfile.TemporaryDirectory(prefix="remedy-benchmark.") as folder:
            cluster = Cluster(options.hosts or hosts, Path(folder))
            try:
                cluster.up()
                part = measure(cluster, options.rounds)
            except (BenchmarkError, RemedyError) as error:
                print(f"{name}: no result: {error}", file=sys.stderr)
                return 2
            finally:
                cluster.down()
        entry = _entry(name, part, load, options)
        print("\n".join(_lines(entry)))
        missed += any(goal.verdict == "missed" for goal in part.goals)
        if not options.no_write:
            _write(name, entry)
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=list(PARTS))
    parser.add_argument("--hosts", type=int, help="instead of the part's own number")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-write", action="store_true")
    return parser.parse_args()


def _entry(name: str, part: Part, load: float, options: argparse.Namespace) -> dict[str, Any]:
    hosts = f" --hosts {options.hosts}" if options.hosts else ""
    return {
        **asdict(part),
        "goals": [{**asdict(goal), "verdict": goal.verdict} for goal in part.goals],
        "command": f"python -m benchmarks.verify {name} --rounds {options.rounds}{hosts}",
        "date": machine.today(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "load": round(load, 2),
    }


def _write(name: str, entry: dict[str, Any]) -> None:
    path = RESULTS / "verify.json"
    document = json.loads(path.read_text("utf-8")) if path.exists() else {"parts": {}}
    parts = {**document["parts"], name: entry}
    path.write_text(json.dumps({"schema": SCHEMA, "parts": parts}, indent=1) + "\n", "utf-8")
    path.with_suffix(".md").write_text(page(parts), "utf-8")


def page(parts: Mapping[str, Any]) -> str:
    """Return the page of the parts that were measured."""
    lines = [HEAD]
    for part in (part for part in PARTS if part in parts):
        lines += [f"## {part.capitalize()}", "", *_lines(parts[part]), ""]
    return "\n".join(lines)


def _lines(entry: dict[str, Any]) -> list[str]:
    lines = [entry["what"], "", "| | |", "|---|---|"]
    lines += [f"| {title} | {figures} |" for title, figures in entry["rows"]]
    lines += ["", "| goal | at most | result | |", "|---|---|---|---|"]
    for plain in entry["goals"]:
        result = Spread(**plain["result"])
        goal = Goal(plain["title"], plain["limit"], plain["unit"], result, plain["digits"])
        limit = "" if goal.limit is None else f"{goal.limit:g} {goal.unit}"
        lines.append(
            f"| {goal.title} | {limit} | {result.text(goal.digits, f' {goal.unit}')} | {goal.verdict} |"
        )
    where = f"{entry['date']}, commit {entry['commit']}, {entry['machine']}; load before: {entry['load']}."
    return [*lines, "", f"`{entry['command']}`, {where}"]


if __name__ == "__main__":
    sys.exit(main())
