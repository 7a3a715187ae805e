"""Transcripts: all that the plans of a test say and do, word by word, beside what the test itself claims.

A test claims what it is about. What else its plans say to an operator (a label, a line of evidence, the next
step) and do (a command, a line of a file) stands in ``data/transcripts``, in a file for each module of tests:
first every part of a plan once, then which parts each test has on which hosts. A word that changes is seen
there in the difference, and is read before it is accepted.

A test whose plans differ from its transcript fails; ``pytest --transcribe FILE`` writes what they are now.
Generated cases (hypothesis) have none, nor have tests that start programs, whose plans have numbers of this
machine. With ``--full`` more cases are tried, and nothing is compared. A test that was
never transcribed is not compared.
"""

from __future__ import annotations

import difflib
import hashlib
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from remedy.plan import Change, Finding, Plan, planner
from remedy.plan.change import FileAction

FOLDER = Path(__file__).parent / "data" / "transcripts"
ROOMS = ("deploys", "firewall")
PART, TEST = "# ", "## "

Parts = Mapping[str, tuple[str, ...]]
"""The parts of a test's plans, in their order, and the hosts of each."""


class Transcripts:
    """A pytest plugin that compares the plans of tests with their transcripts, or writes these anew."""

    def __init__(self, *, write: bool) -> None:
        self.write = write
        self.heard: dict[Path, dict[str, Parts]] = {}
        self.started = 0
        sys.addaudithook(self._note_start)

    def _note_start(self, event: str, _: object) -> None:
        self.started += event == "subprocess.Popen"

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[Any]:
        room = pyfuncitem.path.parent
        if room.name not in ROOMS or getattr(pyfuncitem.obj, "is_hypothesis_test", False):
            return (yield)
        plans: list[Plan] = []
        before = self.started

        def made(**fields: Any) -> Plan:
            plans.append(Plan(**fields))
            return plans[-1]

        with mock.patch.object(planner, "Plan", made):
            result = yield
        if self.started > before:
            return result
        file = FOLDER / room.name / f"{pyfuncitem.path.stem}.txt"
        if self.write:
            self.heard.setdefault(file, {})[pyfuncitem.name] = parts_of(plans)
        else:
            compare(file, pyfuncitem.name, parts_of(plans))
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        whole = not session.config.getoption("keyword") and "::" not in str(session.config.args)
        for file, texts in self.heard.items():
            tests = {**({} if whole else read(file)), **texts}
            if any(tests.values()):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(written(tests), encoding="utf-8")


def compare(file: Path, test: str, parts: Parts) -> None:
    """Check that a test's plans are as in its transcript, if there is one."""
    known = read(file).get(test)
    if known is None or known == parts:
        return
    before, after = (
        [line for part in all_ for line in f"{','.join(all_[part])}: {part}".splitlines()]
        for all_ in (known, parts)
    )
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    advice = f"its plans are not as in {file.name}; where they are right now: pytest --transcribe"
    pytest.fail("\n".join([advice, *lines]))


def parts_of(plans: list[Plan]) -> Parts:
    """Return all that plans say and do."""
    hosts: dict[str, dict[str, None]] = {}
    for plan in plans:
        for finding in plan.findings:
            hosts.setdefault(_of_finding(finding), {})[finding.host or "fleet"] = None
        for change in plan.changes:
            hosts.setdefault(_of_change(change, plan), {})[change.host] = None
    return {part: tuple(names) for part, names in hosts.items()}


def written(tests: Mapping[str, Parts]) -> str:
    """Return the text of a file of transcripts."""
    parts = sorted({part for all_ in tests.values() for part in all_})
    lines = [f"{PART}{_key(part)} {part}" for part in parts]
    for test, all_ in tests.items():
        lines.append(f"{TEST}{test}")
        for hosts in dict.fromkeys(all_.values()):
            keys = " ".join(_key(part) for part, names in all_.items() if names == hosts)
            lines.append(f"{','.join(hosts)}: {keys}")
    return "\n".join([*lines, ""])


@lru_cache(maxsize=4)
def read(file: Path) -> dict[str, Parts]:
    """Return the transcripts of a module of tests, by the name of each test."""
    tests: dict[str, dict[str, tuple[str, ...]]] = {}
    head, *rest = (file.read_text(encoding="utf-8") if file.exists() else "").split(f"\n{TEST}")
    parts = {text[:8]: text[9:].rstrip("\n") for text in f"\n{head}".split(f"\n{PART}")[1:]}
    for text in rest:
        test, *lines = text.rstrip("\n").split("\n")
        tests[test] = {}
        for line in lines:
            hosts, _, keys = line.rpartition(": ")
            tests[test] |= {parts[key]: tuple(hosts.split(",")) for key in keys.split()}
    return dict(tests)


def _key(part: str) -> str:
    return hashlib.sha256(part.encode()).hexdigest()[:8]


def _of_finding(finding: Finding) -> str:
    head = f"{finding.remedy}: {finding.kind.value} ({finding.label})"
    return _block(head, finding.title, *finding.evidence, finding.fix and f"next: {finding.fix}")


def _of_change(change: Change, plan: Plan) -> str:
    action = change.action
    signs = [change.risk.value]
    signs += ["guarded"] * change.guarded + ["for good"] * (not change.reversible)
    lines = [change.title, f"because: {change.reason}"]
    lines += [f"disrupts: {change.disrupts}"] * bool(change.disrupts)
    if isinstance(action, FileAction):
        before, after = (
            plan.contents[digest].decode("ascii", "backslashreplace").splitlines() if digest else []
            for digest in (action.before, action.after)
        )
        kind = "new " if action.before is None else "no " if action.after is None else ""
        lines.append(f"{kind}file {action.path} -> {action.real_path}, {action.mode:o}")
        lines += list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
    else:
        parts = ("observe", "before", "after", "do", "undo")
        lines += [f"{part}: {getattr(action, part)}" for part in parts]
    return _block(f"{change.id[:2]} {change.remedy}: {', '.join(signs)} ({change.label})", *lines)


def _block(head: str, *lines: str) -> str:
    text = "\n".join(line for line in lines if line).encode("unicode_escape").decode()
    return f"{head}\n    " + text.replace("\\n", "\n    ")
