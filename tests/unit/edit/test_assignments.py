"""Files of assignments: read as their owner reads them, edited without touching what is foreign."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remedy.edit.assignments import (
    BEGIN,
    DISABLED,
    Dialect,
    assignments,
    disabled,
    edit,
    effective,
    shell_assignments,
    untrimmed,
)
from remedy.edit.block import END


def said(content: bytes, dialect: Dialect) -> dict[str, str]:
    return {n: a.value for n, a in effective(assignments(content, dialect), dialect).items()}


# What sshd's sessions had in their environment on Debian 12 (pam_env of Linux-PAM 1.5.2).
PAM_SEEN = [
    (b"A=first\nA=second\n", {"A": "second"}),
    (b"export C=x#y\n", {"C": "x"}),
    (b"  D = spaced\n", {}),
    (b"E='single'\n", {"E": "single"}),
    (b"F=\n", {"F": ""}),
    (b"G=a b\n", {"G": "a b"}),
    (b"H=\"un'even\n", {"H": "un'even"}),
    (b"bad line\nL-M=3\n", {}),
    (b"N==x\r\n", {"N": "=x"}),
    (b"#remedy disabled# K=1\n", {}),
]


@pytest.mark.parametrize(("content", "expected"), PAM_SEEN)
def test_pam_env_is_read_as_it_reads_itself(content: bytes, expected: dict[str, str]) -> None:
    assert said(content, Dialect.PAM) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"NCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\n", {"NCCL_DEBUG": "INFO"}),
        (b"NCCL_SOCKET_IFNAME==eno2\r\n", {"NCCL_SOCKET_IFNAME": "=eno2"}),
        (b"NCCL_DEBUG = INFO\n", {"NCCL_DEBUG ": " INFO"}),
        (b" #A=1\n#B=2\n", {" #A": "1"}),
        (b"NCCL_DEBUG\n=INFO\n\nA=\n", {"A": ""}),
    ],
)
def test_nccl_neither_trims_nor_lets_a_later_line_win(
    content: bytes, expected: dict[str, str]
) -> None:
    assert said(content, Dialect.NCCL) == expected


@pytest.mark.parametrize("dialect", [Dialect.MCA, Dialect.UCX])
def test_blanks_around_the_sign_go_and_a_later_line_wins(dialect: Dialect) -> None:
    content = b" btl = ^openib # why\nbtl=tcp\n#pml = ob1\n[section]\n1a = x\nempty =\nname\n"
    assert said(content, dialect) == {"btl": "tcp", "empty": ""}


def test_an_assignment_knows_its_line_and_whether_it_is_ours() -> None:
    content = b"A=1\n" + BEGIN + b"\nB=2\n" + END + b"\n\nC=3\n"
    found = assignments(content, Dialect.PAM)
    assert [(one.line, one.name, one.ours) for one in found] == [
        (1, "A", False), (3, "B", True), (6, "C", False),
    ]  # fmt: skip


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_a_new_block_begins_on_a_line_of_its_own(ending: bytes) -> None:
    assert edit(b"B=2" + ending, b"A=1\n", {}, Dialect.MCA).startswith(b"B=2" + ending + BEGIN)
    assert edit(b"", b"A=1\n", {}, Dialect.MCA) == BEGIN + b"\nA=1\n" + END + b"\n"


def test_a_new_block_is_on_top_where_sections_may_follow() -> None:
    assert edit(b"[x]\n", b"A=1\n", {}, Dialect.UCX).startswith(BEGIN)
    assert edit(b"[x]\n", b"A=1\n", {}, Dialect.MCA).startswith(b"[x]\n")


def test_what_others_disabled_is_no_line_of_ours() -> None:
    content = b"# A=1\n" + DISABLED + b"no assignment\n" + DISABLED + b"A=2\n"
    assert [(one.line, one.name, one.value) for one in disabled(content, Dialect.PAM)] == [
        (3, "A", "2")
    ]


def test_lines_that_nccl_reads_otherwise_than_they_look() -> None:
    found = assignments(b'NCCL_DEBUG = INFO\nNCCL_ALGO="Ring"\nNCCL_PROTO=LL\n', Dialect.NCCL)
    assert [one.line for one in untrimmed(found)] == [1, 2]


def test_a_block_goes_where_it_wins() -> None:
    block = b"A=1\n"
    wrapped = BEGIN + b"\nA=1\n" + END + b"\n"
    assert edit(b"B=2", block, {}, Dialect.PAM) == b"B=2\n" + wrapped
    assert edit(b"B=2", block, {}, Dialect.NCCL) == wrapped + b"B=2"
    assert edit(wrapped + b"B=2\n", b"", {}, Dialect.NCCL) == b"B=2\n"


def test_a_contradicting_line_is_kept_and_no_longer_counts() -> None:
    content = b"# mine\nA=old\nA=new\nB=2\n"
    after = edit(content, b"", {"A": "new"}, Dialect.PAM)
    assert after == b"# mine\n" + DISABLED + b"A=old\nA=new\nB=2\n"
    assert [(one.line, one.value) for one in disabled(after, Dialect.PAM)] == [(2, "old")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("export NCCL_SOCKET_IFNAME=eth9", (("NCCL_SOCKET_IFNAME", "eth9"),)),
        ('  export A="x y" B=2 # why', (("A", "x y"), ("B", "2"))),
        ("[ -n \"$X\" ] && export A='1'", (("A", "1"),)),
        ("if true; then A=1; export A; fi", (("A", "1"),)),
        ("SetEnv GLOO_SOCKET_IFNAME=eth9", (("GLOO_SOCKET_IFNAME", "eth9"),)),
        ("# export A=1", ()),
        ("A=1 mpirun train", ()),
        ("echo A=1", ()),
        ("export A=$HOME/x", ()),
        ("export A=`date`", ()),
        (r"export A=a\b", ()),
        ("readonly A=1", (("A", "1"),)),
        ("declare -gx A=1", (("A", "1"),)),
        ("typeset -x A=1", (("A", "1"),)),
        ("declare -r A=1", ()),
        ("A=1 || B=2", (("A", "1"), ("B", "2"))),
        ("for i in 1; do A=1; done", (("A", "1"),)),
        ("  # A=1", ()),
        ("1A=1", ()),
        ("", ()),
        ("export LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH", ()),
    ],
)
def test_shell_lines(line: str, expected: tuple[tuple[str, str], ...]) -> None:
    assert shell_assignments(line) == expected


LINES = st.lists(
    st.sampled_from(
        [
            b"A=1\n",
            b"A=2\n",
            b"B=x\n",
            b"export A=3\r\n",
            b"# c\n",
            b"\xff\xfe=\n",
            b"no newline",
            BEGIN + b"\n",
            END + b"\n",
            b" A = 4\n",
        ]
    ),
    max_size=8,
).map(b"".join)


@given(LINES, st.sampled_from(list(Dialect)), st.sampled_from([b"", b"A=2\n", b"A=2\nC=1\n"]))
def test_an_edit_wins_keeps_the_rest_and_is_stable(
    content: bytes, dialect: Dialect, block: bytes
) -> None:
    wanted = {"A": "2", "C": "1"} if b"C" in block else {"A": "2"} if block else {}
    after = edit(content, block, wanted, dialect)
    assert edit(after, block, wanted, dialect) == after
    got = said(after, dialect)
    assert {name: got[name] for name in wanted} == wanted
    kept = [line for line in after.splitlines() if line.startswith((b"B", b"# c", b"\xff"))]
    inside = [one for one in assignments(content, dialect) if one.ours and one.name == "B"]
    before = [line for line in content.splitlines() if line.startswith((b"B", b"# c", b"\xff"))]
    assert kept == before or inside or b"# BEGIN" in content


@given(st.binary(max_size=80), st.sampled_from(list(Dialect)))
def test_any_bytes_can_be_read_and_come_through(content: bytes, dialect: Dialect) -> None:
    assume(BEGIN not in content and END not in content)
    assignments(content, dialect)
    assert edit(content, b"", {}, dialect) == content
