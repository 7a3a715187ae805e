"""nsswitch.conf: the hosts file goes first, everything else stays byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.edit.nsswitch import files_first
from remedy.probe.names import hosts_order


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"hosts: dns files\n", b"hosts: files dns\n"),
        (b"hosts:\t\tmyhostname files dns # site\n", b"hosts:\t\tfiles myhostname dns # site\n"),
        (b"hosts: dns [!UNAVAIL=return] files\r\n", b"hosts: files dns [!UNAVAIL=return]\r\n"),
        (b"hosts: dns files [NOTFOUND=return] nis", b"hosts: files dns nis"),
        (b"hosts: dns [NOTFOUND = return] files\n", b"hosts: files dns [NOTFOUND = return]\n"),
        (b"hosts: dns\n", b"hosts: files dns\n"),
        (b"hosts:\n", b"hosts:files dns\n"),
        (b"passwd: files\n", b"passwd: files\nhosts: files dns\n"),
        (b"passwd: files", b"passwd: files\nhosts: files dns\n"),
        (b"", b"hosts: files dns\n"),
        (b"#hosts: dns\nhosts: nis files\n", b"#hosts: dns\nhosts: files nis\n"),
        (b"hosts: files [SUCCESS=merge] dns\n", b"hosts: files [SUCCESS=merge] dns\n"),
    ],
)
def test_files_go_first(before: bytes, after: bytes) -> None:
    assert files_first(before) == after
    assert files_first(after) == after


words = st.sampled_from(
    [b"files", b"dns", b"myhostname", b"resolve", b"[!UNAVAIL=return]", b"[NOTFOUND=return]"]
)
lines = st.one_of(
    st.lists(words, max_size=6).map(lambda w: b"hosts: " + b" ".join(w)),
    st.sampled_from([b"passwd: files systemd", b"# hosts: dns", b"", b"\xff\xfe", b"hosts.x: dns"]),
)


@given(st.lists(lines, max_size=5).map(b"\n".join))
def test_nothing_else_changes_and_no_service_is_lost(content: bytes) -> None:
    after = files_first(content)
    assert hosts_order(after.decode("latin-1"))[0] == "files"
    assert files_first(after) == after

    def others(text: bytes) -> list[bytes]:
        return [
            line for line in text.split(b"\n") if line and not line.lstrip().startswith(b"hosts:")
        ]

    assert others(after) == others(content)
    order = [w for w in hosts_order(content.decode("latin-1")) if w[0] != "["]
    left = [w for w in hosts_order(after.decode("latin-1")) if w[0] != "["]
    if order:
        assert [w for w in left if w != "files"] == [w for w in order if w != "files"]
