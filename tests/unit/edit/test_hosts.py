"""Editing /etc/hosts: what is ours is replaced, what contradicts is disabled, the rest stays."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from remedy.edit.block import END, block_bytes, block_span
from remedy.edit.hosts import (
    BEGIN,
    DISABLED,
    block_entries,
    edit_hosts,
    foreign_entries,
    parse_line,
    split_lines,
)

BLOCK = b"10.0.0.1\tgpu01\n10.0.0.2\tgpu02\n"
ADDRESSES = {"gpu01": "10.0.0.1", "gpu02": "10.0.0.2"}
DEBIAN = b"127.0.0.1\tlocalhost\n127.0.1.1\tgpu01\n\n# ipv6\n::1 localhost ip6-localhost\n"


def test_the_block_is_appended_and_the_loopback_line_disabled() -> None:
    edit = edit_hosts(DEBIAN, BLOCK, ADDRESSES)
    assert edit.content == (
        b"127.0.0.1\tlocalhost\n" + DISABLED + b"127.0.1.1\tgpu01\n"
        b"\n# ipv6\n::1 localhost ip6-localhost\n" + BEGIN + b"\n" + BLOCK + END + b"\n"
    )
    assert [line.number for line in edit.disabled] == [2]
    assert "127.0.1.1" in edit.disabled[0].reason


def test_names_that_are_not_ours_stay_on_their_line() -> None:
    line = b"127.0.0.1  localhost gpu01 loghost # mine\n"
    edit = edit_hosts(line, BLOCK, ADDRESSES)
    assert edit.content.startswith(DISABLED + line + b"127.0.0.1\tlocalhost loghost\n")


def test_the_long_form_beside_a_contradicting_name_goes_along() -> None:
    edit = edit_hosts(b"127.0.1.1 gpu01.example.org gpu01\n", BLOCK, ADDRESSES)
    assert b"gpu01.example.org" not in b"".join(
        line for line in edit.content.splitlines() if not line.startswith(b"#")
    )


def test_a_right_foreign_line_and_a_global_ipv6_line_stay() -> None:
    content = b"10.0.0.1 gpu01.example.org gpu01\n2001:db8::1 gpu01\n10.9.9.9 gpu01.example.org\n"
    edit = edit_hosts(content, BLOCK, ADDRESSES)
    assert edit.disabled == ()
    assert edit.content.startswith(content)


def test_ipv6_loopback_of_a_cluster_name_is_disabled() -> None:
    edit = edit_hosts(b"::1 gpu01\n", BLOCK, ADDRESSES)
    assert len(edit.disabled) == 1


def test_the_block_is_replaced_where_it_stands() -> None:
    first = edit_hosts(b"a\n", BLOCK, {}).content + b"# after\n"
    second = edit_hosts(first, b"10.0.0.3\tgpu03\n", {}).content
    assert second == b"a\n" + BEGIN + b"\n10.0.0.3\tgpu03\n" + END + b"\n# after\n"


def test_a_torn_block_never_swallows_the_lines_after_it() -> None:
    torn = BEGIN + b"\n10.0.0.9\tgone\n1.2.3.4 theirs\n"
    again = edit_hosts(torn, BLOCK, ADDRESSES).content
    assert b"1.2.3.4 theirs\n" in again
    assert again.count(BEGIN) == 1
    assert b"1.2.3.4 theirs\n" in edit_hosts(again, b"", {}).content


def test_lines_that_are_not_text_come_through() -> None:
    content = b"\xff\xfe bytes \x00\r\n10.1.1.1 \xe9t\xe9\r\n"
    assert edit_hosts(content, BLOCK, ADDRESSES).content.startswith(content)


def test_crlf_endings_are_kept_on_lines_of_others() -> None:
    edit = edit_hosts(b"127.0.0.1 localhost\r\n127.0.1.1 gpu01\r\n", BLOCK, ADDRESSES)
    assert edit.content.startswith(b"127.0.0.1 localhost\r\n" + DISABLED + b"127.0.1.1 gpu01\r\n")


def test_template_and_shell_syntax_is_data() -> None:
    content = b"10.1.1.1 {{7*7}} $(reboot) `id`\n"
    assert edit_hosts(content, BLOCK, ADDRESSES).content.startswith(content)


names = st.sampled_from(
    ["gpu01", "gpu02", "GPU01", "localhost", "gpu01.example.org", "other", "x-1"]
)
addresses = st.sampled_from(
    [
        "127.0.0.1",
        "127.0.1.1",
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.77",
        "::1",
        "2001:db8::5",
        "fe80::1%eth0",
    ]
)
entries = st.builds(
    lambda a, n, gap, comment, end: f"{a}{gap}{' '.join(n)}{comment}{end}".encode(),
    addresses,
    st.lists(names, min_size=1, max_size=4),
    st.sampled_from([" ", "\t", "   "]),
    st.sampled_from(["", " # why", "#x"]),
    st.sampled_from(["\n", "\r\n"]),
)
markers = st.sampled_from([BEGIN + b"\n", END + b"\n", DISABLED + b"1.1.1.1 gpu01\n"])
files = st.lists(st.one_of(entries, markers, st.binary(max_size=20)), max_size=12).map(b"".join)


@given(files)
def test_editing_twice_is_editing_once(content: bytes) -> None:
    once = edit_hosts(content, BLOCK, ADDRESSES).content
    again = edit_hosts(once, BLOCK, ADDRESSES)
    assert again.content == once
    assert again.disabled == ()


@given(files)
def test_no_cluster_name_is_left_with_a_wrong_address(content: bytes) -> None:
    once = edit_hosts(content, BLOCK, ADDRESSES).content
    assert {(n, e.address) for e in block_entries(once) for n in e.names} == set(ADDRESSES.items())
    for entry in foreign_entries(once):
        for name in entry.names:
            if name in ADDRESSES and ":" not in entry.address:
                assert entry.address == ADDRESSES[name]
            if name in ADDRESSES:
                assert not entry.loopback


@given(files)
def test_the_block_is_where_its_lines_say(content: bytes) -> None:
    every = split_lines(content)
    span = block_span(every, BEGIN)
    ends = [0, *accumulate(map(len, every))]
    assert block_bytes(content, BEGIN) == (
        None if span is None else (ends[span[0]], ends[span[1] + 1])
    )


@given(files)
def test_every_line_of_others_survives_in_order(content: bytes) -> None:
    def kept(data: bytes) -> list[bytes]:
        every = split_lines(data)
        first, last = block_span(every, BEGIN) or (len(every), len(every))
        lines = []
        for line in (*every[:first], *every[last + 1 :]):
            entry = parse_line(line)
            ours = line.strip() in (BEGIN, END) or line.startswith(DISABLED)
            if not ours and (entry is None or not set(entry.names) & set(ADDRESSES)):
                lines.append(line.rstrip(b"\r\n"))
        return lines

    once = edit_hosts(content, BLOCK, ADDRESSES).content
    survivors = iter(kept(once))
    assert all(line in survivors for line in kept(content) if line)
