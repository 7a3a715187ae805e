"""Which tests reach which line, and how long they take, measured once a tree."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants.draw import ROOMS
from benchmarks.mutants.lane import Conditions, fork, run_pytest
from benchmarks.mutants.operators import Mutant

COLLECTING = "collecting "
# Tests of a mutant's file that are tried although they were not seen to reach it: seconds each, and how many.
QUICK, OTHERS = 0.5, 200


@dataclass(frozen=True)
class LineReach:
    """What a run of all tests without a mutant was like.

    Args:
        seconds: how long each test that passed takes, by its id.
        failed: tests that fail without a mutant, which are left out.
        lines: the tests that carry out a line, by the file's path and the line's number.
    """

    seconds: dict[str, float]
    failed: tuple[str, ...]
    lines: dict[str, dict[str, list[str]]]

    def tests_for(self, mutant: Mutant) -> list[str]:
        """Return the tests that can notice a mutant: those that reach its statement, then others of its file.

        The others are tried as well, if they are quick: not every way by which a line is reached is seen (a
        tracer that an exhausted stack switches off, an answer that is kept from before). What a module makes
        when it is imported can be read without carrying out a line of it, so the quick tests of its room are.
        """
        lines = self.lines.get(mutant.path, {})
        numbers = lines if mutant.top else [str(n) for n in range(mutant.line, mutant.end + 1)]
        reaching = self._tests(lines, numbers)
        others = [test for test in self._tests(lines, lines) if self.seconds[test] <= QUICK]
        readers = [test for test in self._of_room(mutant.path) if mutant.top]
        return list(dict.fromkeys([*reaching, *others[:OTHERS], *readers]))

    def _of_room(self, path: str) -> list[str]:
        """Return the quick tests of the room that a file is in, quickest first."""
        folder = path.removeprefix("remedy/").split("/")[0]
        tests = [test for test in self.seconds if test.startswith(f"tests/unit/{folder}/")]
        return sorted(
            (t for t in tests if self.seconds[t] <= QUICK),
            key=lambda test: (self.seconds[test], test),
        )

    def _tests(self, lines: Mapping[str, Sequence[str]], numbers: Iterable[str]) -> list[str]:
        """Return the tests that carry out any of some lines of a file, quickest first."""
        tests: set[str] = set()
        for number in numbers:
            for test in lines.get(number, ()):
                if test.startswith(COLLECTING):
                    # What a module of tests computes when it is imported, all its tests may look at.
                    module = test.removeprefix(COLLECTING)
                    tests |= {name for name in self.seconds if name.startswith(f"{module}::")}
                else:
                    tests.add(test)
        return sorted(tests & self.seconds.keys(), key=lambda test: (self.seconds[test], test))


PRODUCT = ("remedy", "deploys", "templates")


def tree_digest(root: Path, *folders: str) -> str:
    """Return what stands for all files of some folders; without any, for everything that tests depend on."""
    digest = hashlib.sha256()
    for top in folders or (*PRODUCT, "tests", "benchmarks", "docs"):
        for file in sorted((root / top).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(root)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def measured(tree: Path, tests: Sequence[str], store: Path) -> LineReach:
    """Return the reach of the tests of a copy of the tree, measured now unless ``store`` holds it.

    Raises:
        SystemExit: the tests could not be run.
    """
    if not store.exists():
        log = store.with_suffix(".log")
        pid = fork(lambda: _measure(tests, store), tree, log)
        _, status = os.waitpid(pid, 0)
        if not store.exists():
            sys.exit(f"the tests do not run (status {status}), see {log}")
    data = json.loads(store.read_text())
    return LineReach(data["seconds"], tuple(data["failed"]), data["lines"])


def _measure(tests: Sequence[str], store: Path) -> int:
    import coverage

    root = Path.cwd()
    include = [f"{root.resolve()}/{folder}/*" for folder in ROOMS.values()]
    cover = coverage.Coverage(
        data_file=None, include=include, config_file=False, concurrency=["thread", "greenlet"]
    )
    conditions = Conditions()
    cover.start()
    status = run_pytest(tests, conditions, _Contexts(cover))
    cover.stop()
    data = cover.get_data()
    lines: dict[str, dict[str, list[str]]] = {}
    for name in data.measured_files():
        path = Path(name).relative_to(root.resolve()).as_posix()
        by_line = data.contexts_by_lineno(name)
        lines[path] = {str(n): sorted(x for x in tests if x) for n, tests in by_line.items()}
    passed = {k: v for k, v in conditions.seconds.items() if k not in conditions.failed}
    if passed:
        result = {"seconds": passed, "failed": conditions.failed, "lines": lines}
        store.write_text(json.dumps(result))
    return status


class _Contexts:
    """A pytest plugin that tells coverage which test runs, or which module is being collected."""

    def __init__(self, cover: Any) -> None:
        self.cover = cover

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        if isinstance(collector, pytest.Module):
            self.cover.switch_context(f"{COLLECTING}{collector.nodeid}")
        try:
            return (yield)
        finally:
            self.cover.switch_context("")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        _forget_answers()
        self.cover.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.cover.switch_context("")


def _forget_answers() -> None:
    """Empty the product's caches: otherwise only the first test that asks would reach what answers."""
    for name, module in list(sys.modules.items()):
        if name.startswith("remedy."):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear) and getattr(value, "__module__", "").startswith("remedy."):
                    clear()


def commit_of(root: Path) -> str:
    """Return the commit that is checked out, with a mark when files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"
