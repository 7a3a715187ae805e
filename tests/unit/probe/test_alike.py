"""Facts of hosts that printed the same are one object; whatever a reader looked at keeps others apart."""

from __future__ import annotations

import pytest

from remedy.probe import HostState, alike
from remedy.probe.frames import NoAnswerError, Section, Sections
from remedy.values import Unknown
from tests.unit.probe_data import RECORDED, parse, recorded, replaced

FACTS = ("kernel", "units", "software", "limits", "firewalls", "mounts", "rdma", "mentions", "gpus")


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    alike._kept.clear()


def facts(state: HostState) -> dict[str, object]:
    return {name: getattr(state, name) for name in HostState.model_fields}


def test_hosts_that_differ_elsewhere_share_their_facts() -> None:
    first = parse(recorded("lab-idle"))
    other = parse(
        recorded("lab-idle").replace(
            b"/proc/sys/kernel/hostname:node", b"/proc/sys/kernel/hostname:x"
        )
    )
    assert first.identity != other.identity
    apart = [name for name in FACTS if getattr(first, name) is not getattr(other, name)]
    assert apart == []


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_read_before_changes_no_fact(name: str) -> None:
    alone = facts(parse(recorded(name)))
    for other in (*RECORDED, *RECORDED):
        parse(recorded(other))
    assert facts(parse(recorded(name))) == alone


def test_a_line_that_a_reader_looks_at_keeps_hosts_apart() -> None:
    first = parse(recorded("lab-idle"))
    other = parse(recorded("lab-idle").replace(b"/proc/cmdline:", b"/proc/cmdline:quiet "))
    assert first.kernel != other.kernel
    assert (
        other.kernel
        == parse(recorded("lab-idle").replace(b"/proc/cmdline:", b"/proc/cmdline:quiet ")).kernel
    )
    assert first.units is other.units


def test_a_section_without_an_answer_has_not_that_of_the_host_before() -> None:
    first = parse(recorded("lab-idle"))
    for status in ("late", "timeout", "failed:2"):
        other = parse(replaced(recorded("lab-idle"), "units", b"", status))
        assert isinstance(other.units, Unknown)
        assert other.units != first.units
    assert parse(recorded("lab-idle")).units is first.units


def sections(**bodies: str) -> Sections:
    """Return sections with these bodies; "" is one that came too late."""
    by_name = {
        name: Section(body.encode(), "ok" if body else "late", "", 1.0, 2.0)
        for name, body in bodies.items()
    }
    return Sections(by_name, complete=True)


def test_only_what_was_looked_at_counts() -> None:
    calls: list[str] = []

    def read(seen: Sections) -> str:
        calls.append("read")
        return seen.lines("a").get("/x", ["none"])[0] if seen.absent("b") else "there is b"

    assert alike.alike("test", read, sections(a="/x:1")) == "there is b"
    # The section b was looked at, and nothing of a.
    assert alike.alike("test", read, sections(a="/x:2")) == "there is b"
    assert calls == ["read"]


def test_all_lines_count_for_who_goes_through_them() -> None:
    def read(seen: Sections) -> str:
        return " ".join(seen.lines("a"))

    assert alike.alike("test", read, sections(a="/x:1\n/y:1")) == "/x /y"
    assert alike.alike("test", read, sections(a="/x:1\n/z:1")) == "/x /z"


def test_a_reason_is_not_kept_for_others() -> None:
    def read(seen: Sections) -> str:
        if len(fails) < 1:
            fails.append(1)
            raise NoAnswerError("this machine is busy")
        return seen.text("a")

    fails: list[int] = []
    assert isinstance(alike.alike("test", read, sections(a="1")), Unknown)
    assert alike.alike("test", read, sections(a="1")) == "1"


def test_what_else_a_fact_is_read_from_counts() -> None:
    def of(more: bool) -> str | Unknown:
        return alike.alike("test", lambda s: f"{s.text('a')} {more}", sections(a="1"), more)

    assert (of(True), of(False), of(True)) == ("1 True", "1 False", "1 True")


def test_equal_facts_of_answers_that_differ_are_one_object() -> None:
    def of(body: str) -> tuple[str, ...] | Unknown:
        return alike.alike("test", lambda s: tuple(s.text("a").split()), sections(a=body))

    assert of("a b") is of("a  b")


def test_of_paths_that_end_alike_those_alone_count() -> None:
    def read(seen: Sections) -> list[str]:
        return [line for lines in seen.ending("a", "/x").values() for line in lines]

    first = alike.alike("test", read, sections(a="/1/x:1\n/name:a"))
    assert first == ["1"]
    assert alike.alike("test", read, sections(a="/name:b\n/1/x:1")) is first
    assert alike.alike("test", read, sections(a="/1/x:1\n/2/x:2")) == ["1", "2"]
    assert alike.alike("test", read, sections(a="/1/x:3")) == ["3"]
    assert isinstance(alike.alike("test", read, sections(a="")), Unknown)
