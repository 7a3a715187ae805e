"""The workbench: what a decision notes and plans, and that remedies plan with nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import remedy.deploys
import remedy.firewall
from remedy.errors import UsageError
from remedy.plan import FindingKind, Remedy, Workbench, sha256
from remedy.plan.workbench import Undecided
from remedy.probe import File, HostState, sources
from remedy.probe.state import NOT_PROBED
from remedy.spec import SpecSection
from remedy.values import Unknown
from tests.unit.build import fleet, host_state

ROOMS = (Path(remedy.deploys.__path__[0]), Path(remedy.firewall.__path__[0]))
SOURCES = sorted(path for room in ROOMS for path in room.glob("*.py"))
MADE_BY_THE_WORKBENCH = {"Change", "FileAction", "CommandAction", "Finding"}


def bench_of(**files: bytes | Unknown) -> Workbench[SpecSection]:
    """Return a workbench with a host that has these files, of /etc."""
    known: dict[str, File | Unknown] = {}
    for name, content in files.items():
        path = f"/etc/{name}"
        known[path] = (
            content
            if isinstance(content, Unknown)
            else File(path=path, real_path=path, exists=True, content=content)
        )
    host = host_state("gpu01", "10.0.0.1", files=known)
    return Workbench(fleet(host), host, SpecSection(), "example", "some-cause")


def kinds(bench: Workbench[SpecSection]) -> list[FindingKind]:
    return [finding.kind for finding in bench.findings]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_remedy_makes_a_change_or_a_finding_by_hand(path: Path) -> None:
    calls = [
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert not MADE_BY_THE_WORKBENCH & set(calls), (
        "the workbench makes them: write(), run(), drift()"
    )


def test_what_is_known_is_returned() -> None:
    bench = bench_of(a=b"text")
    assert bench.need(4, "a number") == 4
    assert bench.known("word") == "word"
    assert bench.file("/etc/a").content == b"text"
    assert bench.findings == []


def test_what_is_needed_and_not_known_ends_the_decision_with_a_finding() -> None:
    bench = bench_of(a=Unknown(reason="permission denied"))
    with pytest.raises(Undecided):
        bench.need(Unknown(reason="it did not answer"), "the size of /dev/shm", label="other-cause")
    with pytest.raises(Undecided):
        bench.file("/etc/a")
    assert [(f.kind, f.title, f.evidence, f.label) for f in bench.findings] == [
        (
            FindingKind.UNKNOWN,
            "could not read the size of /dev/shm",
            ("it did not answer",),
            "other-cause",
        ),
        (FindingKind.UNKNOWN, "could not read /etc/a", ("permission denied",), "some-cause"),
    ]


def test_what_the_probe_does_not_read_is_as_unknown_as_what_it_could_not_read() -> None:
    bench = bench_of()
    with pytest.raises(Undecided):
        bench.need(NOT_PROBED, "the clock")
    assert [(f.kind, f.title, f.evidence) for f in bench.findings] == [
        (FindingKind.UNKNOWN, "could not read the clock", (NOT_PROBED.reason,))
    ]


def test_what_is_only_of_interest_ends_it_without_a_word() -> None:
    bench = bench_of()
    with pytest.raises(Undecided):
        bench.known(Unknown(reason="it did not answer"))
    assert bench.findings == []


def test_a_part_ends_alone() -> None:
    bench = bench_of()
    with bench.part():
        bench.need(Unknown(reason="it did not answer"), "one thing")
    bench.report("another thing")
    assert kinds(bench) == [FindingKind.UNKNOWN, FindingKind.REPORT]


def test_evidence_is_a_line_or_lines() -> None:
    bench = bench_of()
    assert bench.drift("wrong", "a line").evidence == ("a line",)
    assert bench.drift("wrong", (word for word in ("a", "b"))).evidence == ("a", "b")
    assert bench.blocked("wrong", fix="do this").fix == "do this"


def test_a_written_file_has_its_digests_reason_and_label_from_the_workbench() -> None:
    bench = bench_of(a=b"old")
    finding = bench.drift("a is wrong", label="other-cause")
    assert bench.write("/etc/a", b"new", "write a", because=finding, mode=0o755, guarded=True)
    (change,) = bench.changes
    assert (change.title, change.reason, change.label) == ("write a", "a is wrong", "other-cause")
    assert (change.host, change.remedy, change.guarded) == ("gpu01", "example", True)
    action = change.action
    assert action.kind == "file"
    assert (action.before, action.after, action.mode) == (sha256(b"old"), sha256(b"new"), 0o755)
    assert bench.contents == {sha256(b"old"): b"old", sha256(b"new"): b"new"}


def test_a_file_is_written_once_and_never_with_two_contents() -> None:
    bench = bench_of(a=b"old")
    because = bench.drift("something is wrong")
    for _ in range(2):
        assert bench.write("/etc/a", b"new", "write it", because=because)
    assert [change.title for change in bench.changes] == ["write it"]
    with pytest.raises(UsageError, match="two contents for /etc/a"):
        bench.write("/etc/a", b"other", "write it otherwise", because=because)


def test_a_file_that_is_not_there_has_no_digest_before_and_a_removed_one_none_after() -> None:
    bench = bench_of(a=b"old")
    absent = File(path="/etc/b", real_path="/etc/b", exists=False)
    bench.host = bench.host.model_copy(update={"files": {**bench.host.files, "/etc/b": absent}})
    finding = bench.drift("wrong")
    assert bench.write("/etc/b", b"new", "write b", because=finding)
    assert bench.remove("/etc/a", "remove a", because=finding)
    made, gone = (change.action for change in bench.changes)
    assert made.kind == gone.kind == "file"
    assert (made.before, gone.after) == (None, None)
    assert bench.contents[str(gone.before)] == b"old"


@pytest.mark.parametrize(
    ("update", "title", "fix"),
    [
        ({"immutable": True}, "/etc/a is immutable (chattr +i)", "chattr -i /real/a"),
        ({"read_only": True}, "/etc/a is on a file system that is mounted read-only", "remount"),
        (
            {"content": b"# Managed by Puppet\n"},
            "/etc/a says that it is managed by Puppet",
            "remedy explain example",
        ),
    ],
)
def test_a_file_that_cannot_be_changed_is_judged_by_the_workbench(
    update: dict[str, object], title: str, fix: str
) -> None:
    bench = bench_of(a=b"old")
    host: HostState = bench.host
    file = host.file("/etc/a")
    assert isinstance(file, File)
    locked = file.model_copy(update={"real_path": "/real/a", **update})
    bench.host = host.model_copy(update={"files": {"/etc/a": locked}})
    finding = bench.drift("a is wrong", label="other-cause")
    assert not bench.write("/etc/a", b"new", "write a", because=finding)
    assert not bench.remove("/etc/a", "remove a", because=finding)
    assert bench.changes == []
    blocked = bench.findings[-1]
    assert kinds(bench) == [FindingKind.DRIFT, FindingKind.BLOCKED, FindingKind.BLOCKED]
    assert blocked.label == "other-cause"
    assert blocked.title.startswith(title)
    assert fix in blocked.fix


def test_a_remedy_that_cures_nothing_may_not_plan_a_change() -> None:
    host = host_state("gpu01", "10.0.0.1")
    bench = Workbench(fleet(host), host, SpecSection(), "example", "some-cause", only_reports=True)
    finding = bench.report("worth knowing")
    with pytest.raises(UsageError, match="the remedy example cures nothing, and plans a change"):
        bench.write("/etc/hosts", b"", "empty it", because=finding)
    assert bench.changes == []


def test_a_command_that_nothing_takes_back_is_not_reversible() -> None:
    bench = bench_of()
    finding = bench.drift("wrong")
    for undo in ("undo it", ""):
        bench.run(
            "do it", because=finding, observe="look", before="a", after="b", do="do", undo=undo
        )
    assert [change.reversible for change in bench.changes] == [True, False]
    assert [change.guarded for change in bench.changes] == [True, False]


@pytest.mark.parametrize(
    ("do", "guarded"), [("iptables -F", False), ("iptables -F", True), ("do", True)]
)
def test_what_can_lock_out_and_nothing_takes_back_is_refused(do: str, guarded: bool) -> None:
    bench = bench_of()
    finding = bench.drift("wrong")
    with pytest.raises(UsageError, match="nothing takes it back: 'do it'"):
        bench.run(
            "do it",
            because=finding,
            observe="look",
            before="a",
            after="b",
            do=do,
            undo="",
            guarded=guarded,
        )
    assert bench.changes == []


PAGE = Path(__file__).resolve().parents[3] / "docs" / "writing-a-remedy.md"


def test_the_page_on_writing_a_remedy_names_what_there_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    on_the_bench = {*dir(Workbench), "host", "fleet", "settings"}
    assert set(re.findall(r"\bbench\.(\w+)", text)) <= on_the_bench
    assert set(re.findall(r"@NAME\.(\w+)", text)) <= set(dir(Remedy))
    for path in re.findall(
        r"`((?:remedy|deploys|tests/unit|tests/lab|scripts|docs)/[\w./-]+)`", text
    ):
        assert "NAME" in path or (PAGE.parents[1] / path.rstrip("/")).exists(), path
    for name in ("SYSCTLS", "UNITS", "PROGRAMS", "PRESENCE"):
        assert name in text
        assert hasattr(sources, name)
