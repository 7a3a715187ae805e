"""Hosts of ClusterShell's groups: files of groups, and a groups.conf with programs of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from remedy.errors import UsageError
from remedy.inventory.elsewhere import clustershell, read_hosts
from tests.unit.inventory.elsewhere import listing_of, loaded, names_of, noted, type_in

YAML = """
roles:
    gpu: 'gpu[01-04]'
    login: login1
    all: '@gpu,@login'
    old: 'gpu[01-06]!gpu[01-04]'
racks:
    r1: gpu[01-02]
    r2: [gpu03, [gpu04]]
    both: '@racks:r1,@racks:r2'
"""
LINES = "# local groups\ngpu: gpu[01-04]\nlogin: login1  # old\nall: @gpu,login1\n"
CONF = """[Main]
default: local
[local]
map: echo gpu[01-03]
list: echo gpu
[racks]
map: [ $GROUP = r1 ] && echo gpu[01-02]
list: echo r1
"""


def test_groups_of_yaml_become_hosts_and_groups(tmp_path: Path) -> None:
    listing = listing_of(tmp_path, "clustershell", YAML)
    assert names_of(listing) == "gpu[01-06],login1"
    assert len(loaded(tmp_path, listing)) == 7
    assert listing.groups["old"] == ("gpu05", "gpu06")
    assert listing.groups["both"] == ("gpu01", "gpu02", "gpu03", "gpu04")
    assert "all (group_all)" in noted(listing)


def test_lines_of_groups_are_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, LINES)
    listing = read_hosts("clustershell", "-")
    assert names_of(listing) == "gpu[01-04],login1"
    assert listing.groups["login"] == ("login1",)


def test_a_groups_conf_is_read_with_its_programs(tmp_path: Path) -> None:
    listing = listing_of(tmp_path, "clustershell", CONF, "groups.conf")
    assert names_of(listing) == "gpu[01-03]"
    assert listing.groups == {"gpu": ("gpu01", "gpu02", "gpu03"), "r1": ("gpu01", "gpu02")}


def test_a_groups_conf_has_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, CONF)
    with pytest.raises(UsageError, match="no folder for what a groups") as caught:
        read_hosts("clustershell", "-")
    assert "Give its path" in caught.value.next_step


def test_standard_input_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        read_hosts("clustershell", "-")


def test_a_program_that_does_not_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clustershell, "SECONDS", 2)
    with pytest.raises(UsageError, match="took more than 2 seconds"):
        listing_of(
            tmp_path, "clustershell", CONF.replace("echo gpu\n", "exec sleep 20\n"), "groups.conf"
        )


def test_groups_of_one_name_stay_apart(tmp_path: Path) -> None:
    text = "roles:\n  gpu: a[1-2]\n  rack-1: a1\n  rack_1: a2\nracks:\n  gpu: b1\n"
    listing = listing_of(tmp_path, "clustershell", text)
    assert listing.groups == {
        "roles_gpu": ("a1", "a2"), "racks_gpu": ("b1",), "rack_1": ("a1", "a2")
    }  # fmt: skip
    notes = noted(listing)
    assert (
        "@roles:gpu (roles_gpu), @racks:gpu (racks_gpu): several sources have a group of this name"
        in notes
    )
    assert "rack-1 and rack_1 (rack_1): groups that are one in the inventory" in notes
    assert len(loaded(tmp_path, listing)) == 3


def test_the_lines_of_one_group_are_one(tmp_path: Path) -> None:
    listing = listing_of(tmp_path, "clustershell", "gpu: a1 # old\nempty:\nother: # x\ngpu: a2\n")
    assert listing.groups == {"gpu": ("a1", "a2")}
    assert "empty,other: left out, a group without hosts" in noted(listing)


def test_what_nodeset_warns_of_and_empty_groups_are_named(tmp_path: Path) -> None:
    text = CONF.replace("map: echo gpu[01-03]", "map: echo") + "[nolist]\nmap: echo x1\n"
    listing = listing_of(tmp_path, "clustershell", text, "groups.conf")
    assert listing.groups == {"r1": ("gpu01", "gpu02")}
    assert "gpu: left out, a group without hosts" in noted(listing)
    assert "nodeset: Warning: No list upcall" in noted(listing)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: @b\nb: @a\nc: c1\n", "@default:a, @default:b: left out, it is a member of itself"),
        ("a: @nowhere\nc: c1\n", "there is no group nowhere"),
        ("a: g[1-9999999]\nc: c1\n", "stands for more than"),
        ("a: -oProxyCommand=x\nc: c1\n", "-oProxyCommand=x: left out, no host name"),
        ("a: bad_name,localhost\nc: c1\n", "localhost: left out"),
        ("a: g[1-\nc: c1\n", "@default:a: left out"),
        ("rack-1: c1\n", "rack-1 (rack_1)"),
        ("c: c1\nno group\n", "line 2: no group: left out, no GROUP: NODES"),
    ],
)  # fmt: skip
def test_what_was_left_out_is_named(tmp_path: Path, text: str, part: str) -> None:
    listing = listing_of(tmp_path, "clustershell", text)
    assert names_of(listing) == "c1"
    assert part in noted(listing)


BOMB = "s:\n  a0: &a0 [x1]\n" + "".join(
    f"  a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "s:\n  on: a1\n", "s:\n  10: a1\n", "just words", "s: {a: [1}", "s:\n  a: &x [*x]\n", BOMB,
     "a: " + "x" * 10_000_000, "!!python/object:os.x {}"],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_groups_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        listing_of(tmp_path, "clustershell", text)
