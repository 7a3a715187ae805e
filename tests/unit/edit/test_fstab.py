"""Editing fstab: one option changes, every other byte stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.edit.fstab import mount_option, set_mount_option

POINT = "/dev/shm"
NEW = "tmpfs /dev/shm tmpfs size=1g 0 0"


def edited(content: bytes) -> bytes:
    return set_mount_option(content, POINT, "size", "1g", NEW)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"tmpfs /dev/shm tmpfs size=1g 0 0\n"),
        (b"UUID=1 / ext4 rw 0 1", b"UUID=1 / ext4 rw 0 1\ntmpfs /dev/shm tmpfs size=1g 0 0\n"),
        (
            b"tmpfs\t/dev/shm tmpfs  defaults\t0 0\n",
            b"tmpfs\t/dev/shm tmpfs  defaults,size=1g\t0 0\n",
        ),
        (b"a /dev/shm tmpfs size=64m,nosuid 0 0", b"a /dev/shm tmpfs nosuid,size=1g 0 0"),
        (b"a /dev/shm tmpfs size=64m\r\n", b"a /dev/shm tmpfs size=1g\r\n"),
        (
            b"#tmpfs /dev/shm tmpfs size=64m 0 0\n",
            b"#tmpfs /dev/shm tmpfs size=64m 0 0\n" + NEW.encode() + b"\n",
        ),
        (
            b"a /dev/shm/x tmpfs size=1 0 0\n",
            b"a /dev/shm/x tmpfs size=1 0 0\n" + NEW.encode() + b"\n",
        ),
        # Of two lines the later one counts.
        (
            b"a /dev/shm tmpfs size=1m 0 0\nb /dev/shm tmpfs size=2m 0 0\n",
            b"a /dev/shm tmpfs size=1m 0 0\nb /dev/shm tmpfs size=1g 0 0\n",
        ),
    ],
)
def test_only_the_option_changes(before: bytes, after: bytes) -> None:
    assert edited(before) == after
    assert edited(after) == after


def test_an_option_is_told_with_its_line() -> None:
    content = b"# x\na /dev/shm tmpfs size=64m,size=50% 0 0\nb / ext4 rw 0 1\n"
    assert mount_option(content, POINT, "size") == (2, "50%")
    assert mount_option(content, "/", "size") == (3, "")
    assert mount_option(content, "/boot", "size") is None


lines = st.sampled_from(
    [
        b"# comment /dev/shm\n", b"\n", b"UUID=1 / ext4 errors=remount-ro 0 1\n", b"\xff\xfe /dev/shm\n",
        b"tmpfs /dev/shm tmpfs size=1 0 0 # x\n", b"tmpfs /dev/shm\n", b"short\n", b"  s /a\\040b c d 0\r\n",
    ]
)  # fmt: skip


@given(st.lists(lines, max_size=6).map(b"".join), st.booleans())
def test_every_other_line_survives(content: bytes, cut: bool) -> None:
    content = content[:-1] if cut else content
    after = edited(content)
    assert edited(after) == after
    found = mount_option(after, POINT, "size")
    assert found is not None
    assert found[1] == "1g"
    before, now = content.splitlines(), after.splitlines()
    same = [line for number, line in enumerate(now, 1) if number != found[0]]
    was = mount_option(content, POINT, "size")
    assert same == [
        line for number, line in enumerate(before, 1) if was is None or number != was[0]
    ]


def test_the_value_of_an_option_may_hold_an_equals_sign() -> None:
    line = b"tmpfs /dev/shm tmpfs mode=1777,size=1=2 0 0\n"
    assert mount_option(line, "/dev/shm", "size") == (1, "1=2")
    new = set_mount_option(line, "/dev/shm", "size", "3g", "")
    assert new == b"tmpfs /dev/shm tmpfs mode=1777,size=3g 0 0\n"
