"""limits.conf(5) as pam_limits reads it: sizes, no limit, and which of several lines decides."""

from __future__ import annotations

import pytest

from remedy.edit.limits import UNLIMITED, at_least, decides, parse_limits_file

PATH = "/etc/security/limits.conf"


def values(text: str) -> list[int]:
    return [entry.value for entry in parse_limits_file(PATH, text.encode())]


@pytest.mark.parametrize("word", ["unlimited", "infinity", "-1"])
@pytest.mark.parametrize("item", ["memlock", "nofile"])
def test_every_word_for_no_limit_is_no_limit(word: str, item: str) -> None:
    assert values(f"* - {item} {word}\n") == [UNLIMITED]


@pytest.mark.parametrize("item", ["memlock", "stack", "as", "core", "data", "fsize", "rss"])
def test_memory_is_given_in_kib(item: str) -> None:
    assert values(f"* hard {item} 3\n") == [3 * 1024]


@pytest.mark.parametrize("item", ["nofile", "nproc", "nice", "maxlogins"])
def test_what_is_no_memory_is_a_plain_number(item: str) -> None:
    assert values(f"* hard {item} 3\n") == [3]


@pytest.mark.parametrize(
    "line",
    ["# * - nofile 1", "* both nofile 1", "* - nofile many", "* - nofile", "* - nofile 1 2", "* - nofile -2"],
)  # fmt: skip
def test_what_pam_would_not_take_is_passed_over(line: str) -> None:
    assert values(f"{line}\n* - nofile 7\n") == [7]


def test_an_entry_knows_its_file_and_its_line() -> None:
    text = b"# first\n\n  root\tsoft nofile 5 # why\n\xff\n* hard nproc 6\n"
    found = parse_limits_file(PATH, text)
    assert [(e.path, e.line, e.domain, e.kind, e.item) for e in found] == [
        (PATH, 3, "root", "soft", "nofile"),
        (PATH, 5, "*", "hard", "nproc"),
    ]


def test_the_last_line_for_the_domain_decides_and_a_dash_is_for_both() -> None:
    entries = parse_limits_file(
        PATH, b"* soft nofile 1\n* - nofile 2\n* hard nofile 3\nroot - nofile 4\n* - nproc 5\n"
    )

    def value(domain: str, item: str, kind: str) -> int | None:
        entry = decides(entries, domain, item, kind)
        return None if entry is None else entry.value

    assert value("*", "nofile", "soft") == 2
    assert value("*", "nofile", "hard") == 3
    assert value("root", "nofile", "hard") == 4
    assert value("*", "nproc", "hard") == 5
    assert value("root", "nproc", "hard") is None


@pytest.mark.parametrize(
    ("value", "floor", "enough"),
    [
        (10, 9, True), (10, 10, True), (10, 11, False), (UNLIMITED, 10, True), (10, UNLIMITED, False),
        (UNLIMITED, UNLIMITED, True), (0, 0, True),
    ],
)  # fmt: skip
def test_no_limit_is_more_than_any_number(value: int, floor: int, enough: bool) -> None:
    assert at_least(value, floor) is enough
