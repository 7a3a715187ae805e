"""Trying mutants side by side, each in a copy of the tree."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.mutants.lane import HANG, Conditions, copy_tree, fork, run_pytest
from benchmarks.mutants.operators import Mutant
from benchmarks.mutants.reach import PRODUCT, LineReach, tree_digest

KILLED, HUNG, SURVIVED, UNREACHED = "killed", "hung", "survived", "unreached"


@dataclass(frozen=True)
class Result:
    """How the trial of a mutant ended.

    Args:
        key: which one.
        end: "killed", "hung" (which counts as killed), "survived", or "unreached": no test comes by.
        test: the test that noticed it.
        tests: how many tests could have.
        seconds: how long it took.
    """

    key: str
    end: str
    test: str = ""
    tests: int = 0
    seconds: float = 0.0

    @property
    def dead(self) -> bool:
        return self.end in (KILLED, HUNG)


class Records:
    """Results, one a line of a file, so that a run that is cut off goes on where it was.

    A mutant stays dead while neither the product nor the file of the test that killed it changes: so after new
    tests were written only the survivors are tried again.

    Args:
        file: where results are kept.
        root: the tree that is tried.
        name: stands for that tree and for the tests that are run.
    """

    def __init__(self, file: Path, root: Path, name: str) -> None:
        self.file = file
        self.root = root
        self.name = name
        self.product = tree_digest(root, *PRODUCT)
        self.results: dict[str, Result] = {}
        self.killers: dict[str, str] = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            record = json.loads(line)
            result = Result(**record["result"])
            self.killers[result.key] = result.test
            same = result.dead and record["by"] == self._by(result)
            if record["tree"] == name or same:
                self.results[result.key] = result

    def add(self, result: Result) -> None:
        """Keep a result."""
        self.results[result.key] = result
        record = {"tree": self.name, "by": self._by(result), "result": asdict(result)}
        with self.file.open("a") as out:
            out.write(json.dumps(record) + "\n")

    def _by(self, result: Result) -> str:
        """Return what a death depends on: the product, and the file of the test."""
        file = self.root / result.test.partition("::")[0]
        content = file.read_bytes() if result.test and file.is_file() else b""
        return hashlib.sha256(self.product.encode() + content).hexdigest()[:16]


@dataclass
class _Running:
    mutant: Mutant
    tree: Path
    tests: int
    began: float


def attempt(
    mutants: Iterable[Mutant], reach: LineReach, records: Records, first: Path, jobs: int
) -> Iterator[tuple[Mutant, Result]]:
    """Try every mutant that has no result yet; yield each with its result, as they come.

    Args:
        mutants: what to try.
        reach: which tests to try it with.
        records: where results are kept.
        first: a copy of the tree, with its modules compiled.
        jobs: how many are tried at once.
    """
    trees = [first]
    for number in range(1, jobs):
        trees.append(first.with_name(f"{first.name}-{number}"))
        shutil.rmtree(trees[-1], ignore_errors=True)
        copy_tree(first, trees[-1])
    running: dict[int, _Running] = {}
    for mutant in mutants:
        tests = reach.tests_for(mutant)
        if mutant.key in records.results:
            yield mutant, records.results[mutant.key]
        elif not tests:
            result = Result(mutant.key, UNREACHED)
            records.add(result)
            yield mutant, result
        else:
            while not trees:
                yield _finished(running, records, trees)
            killer = records.killers.get(mutant.key)
            tests.sort(key=lambda test: test != killer)
            tree = trees.pop()
            pid = _start(mutant, tests, reach, tree)
            running[pid] = _Running(mutant, tree, len(tests), time.monotonic())
    while running:
        yield _finished(running, records, trees)


def _start(mutant: Mutant, tests: Sequence[str], reach: LineReach, tree: Path) -> int:
    file = tree / mutant.path
    shutil.copy2(file, tree / "original")
    file.write_text(mutant.apply(file.read_text(encoding="utf-8")), encoding="utf-8")
    # What is compiled is taken for up to date by its second and size, which a mutant may have as well.
    for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        stale.unlink()
    return fork(lambda: _trial(tests, reach), tree, tree / "trial.log")


def _trial(tests: Sequence[str], reach: LineReach) -> int:
    sys.dont_write_bytecode = True
    conditions = Conditions(usual=reach.seconds, order=tests)
    modules = sorted({test.partition("::")[0] for test in tests})
    status = run_pytest(["-x", "--tb=no", *modules], conditions)
    Path("killer").write_text(conditions.failed[0] if conditions.failed else "")
    return status


def _finished(
    running: dict[int, _Running], records: Records, trees: list[Path]
) -> tuple[Mutant, Result]:
    """Wait for a trial to end; return what came of it, and its tree to ``trees``."""
    pid, status = os.wait()
    trial = running.pop(pid)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what a test has left running
    killer = trial.tree / "killer"
    test = killer.read_text() if killer.exists() else ""
    killer.unlink(missing_ok=True)
    end = SURVIVED if code == 0 else HUNG if code == HANG else KILLED
    seconds = round(time.monotonic() - trial.began, 2)
    result = Result(trial.mutant.key, end, test, trial.tests, seconds)
    shutil.move(trial.tree / "original", trial.tree / trial.mutant.path)
    records.add(result)
    trees.append(trial.tree)
    return trial.mutant, result
