"""``--limit``: what remedy prints selects those hosts again; what is not there is an error."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.errors import InventoryError
from remedy.inventory import Inventory, Node
from remedy.text import MOST_NAMES, BracketError, expand, fold, limited

GPUS = [f"gpu{number:02}" for number in range(1, 13)]


def inventory(*names: str) -> Inventory:
    return Inventory(
        Path("inventory.py"),
        tuple(Node(name, name, groups=("everything", *groups_of(name))) for name in names),
    )


def groups_of(name: str) -> tuple[str, ...]:
    if not name.startswith("gpu"):
        return ("login",)
    return ("gpus", f"rack{int(name[3:]) % 2}")


FLEET = inventory(*GPUS, "login1", "r1n2", "r2n1")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("gpu[10-12]", "gpu[10-12]"),
        ("gpu[01-12/5]", "gpu[01,06,11]"),
        ("gpu[01,03-04]", "gpu[01,03-04]"),
        ("gpu0[1-3]", "gpu[01-03]"),
        ("gpu01,login1", "gpu01,login1"),
        ("gpu01 login1", "gpu01,login1"),
        (" gpu01,,gpu02, ", "gpu[01-02]"),
        ("r[1]n[2],r2n[1]", "r1n2,r2n1"),
        ("*", fold(FLEET.names)),
        ("gpu?1", "gpu[01,11]"),
        ("gpu[01-02]*", "gpu[01-02]"),
        ("@gpus", "gpu[01-12]"),
        ("gpus", "gpu[01-12]"),
        ("rack*", "gpu[01-12]"),
        ("@rack*!gpu[01-10]", "gpu[11-12]"),
        ("@rack[0-1]&gpu[01-04]", "gpu[01-04]"),
        ("@*!gpu[01-12]", "login1,r1n2,r2n1"),
        ("* ! @gpus", "login1,r1n2,r2n1"),
        ("@rack1&gpu[01-04],login1", "gpu[01,03],login1"),
        ("gpu[01-03]^gpu[02-04]", "gpu[01,04]"),
        ("gpu01,gpu02!gpu01", "gpu02"),
    ],
)
def test_a_text_selects(text: str, chosen: str) -> None:
    assert fold(FLEET.select([text])) == chosen


@pytest.mark.parametrize(
    ("text", "message", "next_step"),
    [
        ("", "--limit with an empty text selects no host", "Leave --limit out"),
        ("  ", "--limit with an empty text selects no host", "Leave --limit out"),
        (",", "--limit , selects no host", "Leave --limit out"),
        ("gpu01!gpu01", "selects no host", "Leave --limit out for all hosts."),
        ("gpu01&gpu02", "selects no host", "Leave --limit out"),
        ("!gpu01", "a name is missing before '!gpu01'", "gpu[01-08]!gpu03"),
        ("gpu01!", "a name is missing after '!'", "gpu[01-08]!gpu03"),
        ("gpu01,!gpu02", "a name is missing before '!gpu02'", "gpu[01-08]!gpu03"),
        ("gpu[1-", "a bracket is not closed", "gpu[01-08]!gpu03"),
        ("gpu]", "a bracket is not closed", "gpu[01-08]!gpu03"),
        ("gpu[]", "is no list of names", "gpu[01-08]!gpu03"),
        ("gpu[3-1]", "is no list of names", "gpu[01-08]!gpu03"),
        ("gpu[1-999999999999]", "more than 1000000 names", "gpu[01-08]!gpu03"),
        ("gpu[1-3]", "--limit gpu[1-3]: no host or group", "Did you mean gpu[01-03]?"),
        ("gpu[01-13]", "--limit gpu13: no host or group", "(--limit gpu[01-13])"),
        ("gpu[1-100000]", "gpu[1-9,13-103] and 99897 more: no host or group", "Did you mean gpu[01-12]?"),
        ("GPU01", "--limit GPU01: no host or group", "Did you mean gpu01?"),
        ("all", "--limit all: no host or group", "Did you mean '*'?"),
        ("@all", "--limit @all: no host or group", "Did you mean '*'?"),
        ("@rck1", "--limit @rck1: no host or group", "Did you mean @rack1?"),
        ("gpu01.example.com", "no host or group of inventory.py", "Did you mean gpu01?"),
        ("logn1", "no host or group of inventory.py", "Did you mean login1?"),
        ("gpu01:22", "--limit gpu01:22: no host or group", "Did you mean gpu01?"),
        ("root@gpu01", "no host or group", "Did you mean gpu01?"),
        ("gpu01;gpu02", "no host or group", "Did you mean gpu[01-02]?"),
        ("gpux*", "--limit gpux*: no host or group", "Groups: @everything, @gpus"),
        ("*!gpu99", "--limit gpu99: no host or group", "(--limit *!gpu99)"),
        ("gpu01;reboot", "--limit gpu01;reboot: no host or group", "Hosts: gpu[01-12]"),
        ("^/nowhere", "the file cannot be read: No such file", "lists hosts"),
        ("^~nobody-is-called-this/hosts", "the file cannot be read: No such file", "lists hosts"),
        ("^/no\0where", "the file cannot be read", "lists hosts"),
        ("^/etc", "the file cannot be read: Is a directory", "lists hosts"),
    ],
)  # fmt: skip
def test_what_selects_nothing_or_cannot_be_read_is_refused(
    text: str, message: str, next_step: str
) -> None:
    with pytest.raises(InventoryError) as caught:
        FLEET.select([text])
    assert message in caught.value.message
    assert next_step in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_host_is_meant_where_a_group_is_called_like_it() -> None:
    """What remedy prints are hosts, and such a line of the inventory is easily written."""
    nodes = (Node("login1", "a", groups=("staff",)), Node("gpu01", "b", groups=("login1", "staff")))
    fleet = Inventory(Path("inventory.py"), nodes)
    assert fleet.select(["login1"]) == ("login1",)
    assert fleet.select(["*!login1"]) == ("gpu01",)
    assert fleet.select(["@login1"]) == ("gpu01",)


def test_several_texts_add_up_and_each_has_to_select_something() -> None:
    assert FLEET.select(["gpu02", "gpu01"]) == ("gpu01", "gpu02")
    assert FLEET.select([]) == FLEET.names
    with pytest.raises(InventoryError, match="empty text"):
        FLEET.select(["gpu01", ""])


def test_standard_input_lists_hosts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO("\ufeffgpu[01-02]  # the new ones\n\nlogin1\n".encode())

    monkeypatch.setattr("sys.stdin", Input)
    assert fold(FLEET.select(["^-!gpu02"])) == "gpu01,login1"


def test_a_file_lists_hosts_in_the_same_notation(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text("# a comment\ngpu[01-04]!gpu03   # another\n\nlogin1\n")
    assert fold(FLEET.select([f"^{path}"])) == "gpu[01-02,04],login1"
    assert fold(FLEET.select([f"@rack1&^{path}"])) == "gpu01"
    path.write_bytes(b"\xef\xbb\xbf# by a program of Windows\r\ngpu[01-02]\r\n")
    assert fold(FLEET.select([f"^{path}"])) == "gpu[01-02]"
    path.write_text("gpu01\ngpu99\n")
    with pytest.raises(InventoryError, match=re.escape(f"^{path}, line 2: gpu99: no host")):
        FLEET.select([f"^{path}"])
    path.write_text("gpu01\ngpu99\nrack9\n")
    with pytest.raises(InventoryError, match=r"line 2: gpu99: (?s:.*)line 3: rack9: no host"):
        FLEET.select([f"^{path}"])
    path.write_text("^other\n")
    with pytest.raises(InventoryError, match="line 1: a file cannot name a file"):
        FLEET.select([f"^{path}"])


LABEL = st.from_regex(r"\A[a-z]{1,3}([0-9]{1,4}(-?[a-z]{0,2}[0-9]{0,3}[a-z0-9])?)?\Z")
NAMES = st.lists(LABEL, min_size=1, max_size=12, unique=True)


@given(names=NAMES, data=st.data())
def test_what_is_printed_selects_the_same_hosts(names: list[str], data: st.DataObject) -> None:
    fleet = Inventory(Path("inventory.py"), tuple(Node(name, name) for name in names))
    chosen = data.draw(st.sets(st.sampled_from(names), min_size=1))
    assert set(fleet.select([fold(chosen)])) == chosen
    others = set(names) - chosen
    if others:
        assert set(fleet.select(["!".join(["*", *chosen])])) == others


@given(text=st.text(alphabet="gpu01-[],!&^@*? /x", max_size=14))
def test_any_text_selects_hosts_or_is_refused_in_words(text: str) -> None:
    chosen: tuple[str, ...] = ()
    with suppress(InventoryError):
        chosen = FLEET.select([text])
        assert chosen
    assert set(chosen) <= set(FLEET.names)


def test_a_range_without_end_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(BracketError, match="more than"):
        expand(f"gpu[0-{MOST_NAMES}]")
    with pytest.raises(BracketError, match="more than"):
        expand("r[0-9999]n[0-9999]")
    assert len(expand(f"gpu[1-{MOST_NAMES}/1000]")) == MOST_NAMES // 1000


def test_hosts_behind_limit_are_quoted_for_a_shell() -> None:
    assert limited(["gpu02", "gpu01"]) == "'gpu[01-02]'"
    assert limited(["gpu01"]) == "gpu01"


def test_no_hosts_to_be_replaced_are_not_all_of_them() -> None:
    with pytest.raises(InventoryError) as refused:
        FLEET.select([""], "--replace")
    assert refused.value.next_step.startswith("Name a host. Hosts: ")
