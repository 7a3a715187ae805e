"""Sample mutants of the rooms that decide, and say which of them the unit tests notice.

    python -m benchmarks.mutants --sample 400 --seed 7
    python -m benchmarks.mutants --rooms firewall edit --tests tests/unit/firewall tests/unit/edit

The table goes to standard output, then the survivors. Copies of the tree, what was measured and the results
lie in ``build/mutants``: a run that was cut off goes on there, and a mutant is tried first with the test that
killed it before. The exit status is 1 when fewer are killed than ``--least`` says, in percent.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from benchmarks.mutants.draw import ROOMS, draw
from benchmarks.mutants.lane import copy_tree, preload
from benchmarks.mutants.reach import commit_of, measured, tree_digest
from benchmarks.mutants.table import survivors, table
from benchmarks.mutants.trial import Records, attempt

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run the command; return its exit status."""
    options = _options()
    folder: Path = options.folder.resolve()
    tests = sorted(options.tests)
    commit = commit_of(ROOT)
    copied = folder / "tree"
    shutil.rmtree(copied, ignore_errors=True)
    copy_tree(ROOT, copied)  # from here on it does not matter what changes in the checkout
    name = f"{tree_digest(copied)}-{'-'.join(test.replace('/', '.') for test in tests)}"
    preload()
    began = time.monotonic()
    reach = measured(copied, tests, folder / f"reach-{name}.json")
    _say(f"{len(reach.seconds)} tests pass without a mutant ({time.monotonic() - began:.0f} s)")
    for failed in reach.failed:
        _say(f"left out, it fails without a mutant: {failed}")
    sample = draw(copied, options.rooms, options.sample, options.seed)
    records = Records(folder / "results.jsonl", copied, name)
    tried = []
    for mutant, result in attempt(sample, reach, records, copied, options.jobs):
        tried.append((mutant, result))
        place = f"{mutant.path}:{mutant.line}"
        _say(
            f"{len(tried)}/{len(sample)} {result.end:9} {result.seconds:6.1f} s {place} {mutant.operator}"
        )
    print(f"{len(tried)} mutants, seed {options.seed}, commit {commit}\n")
    print(table(tried))
    for text in survivors(tried):
        print(text)
    killed = sum(result.dead for _, result in tried)
    return int(100 * killed < options.least * len(tried))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants")
    parser.add_argument("--sample", type=int, default=400, help="how many mutants (400)")
    parser.add_argument("--seed", type=int, default=7, help="which ones (7)")
    parser.add_argument("--rooms", nargs="+", choices=tuple(ROOMS), default=list(ROOMS))
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="with which tests")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once (2)")
    parser.add_argument("--least", type=float, default=0.0, help="percent that must be killed")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:  # so that sets have one order, in all trials
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.mutants", *sys.argv[1:]])  # noqa: S606
    sys.exit(main())
