"""Hosts of hostfiles, as Open MPI, MPICH, DeepSpeed and batch systems have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import UsageError
from tests.unit.inventory.elsewhere import data_of, listing_of, loaded, names_of, noted

OPEN_MPI = """
# This is an example hostfile.  Comments begin with #
foo.example.com
bar.example.com slots=2
yow.example.com slots=4 max-slots=4
baz slots = 8   // a comment
/* not
gone slots=4
today */
"""
WAYS = """
ops@gpu01 slots=8
gpu02 slots=8 port=2222 username="root"
10.1.0.3 slots=8 user=ubuntu
fe80::17 slots=8
"""
MPICH = """
gpu01:8
gpu02:8 binding=user:0-3
gpu03:8 user=ops ifname=ib0
gpu03:8
"""
EXCLUDED = "gpu01\ngpu02\n^gpu02\n+n0\n+e:2\nlocalhost slots=4\n"
RANKS = "rank 0=gpu01 slot=0:0-7\nrank 1=ops@gpu02 slot=1\nrank 2=gpu01 slot=1\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OPEN_MPI, "bar.example.com,baz,foo.example.com,yow.example.com"),
        (WAYS, "gpu[01-02],node-10-1-0-3,node-fe80-0000-0000-0000-0000-0000-0000-0017"),
        (MPICH, "gpu[01-03]"),
        (EXCLUDED, "gpu01"),
        (RANKS, "gpu[01-02]"),
        ("worker-1 slots=4\nworker-2 slots=4\n", "worker-[1-2]"),  # DeepSpeed
        ("gpu[01-16] slots=8\nlogin1,login2\n", "gpu[01-16],login[1-2]"),
        ("gpu01:8,gpu02:8,rack[1-2]n[1-2]:4\n", "gpu[01-02],rack[1-2]n[1-2]"),  # as after mpirun -H
        ("n1\nn1\nn1\nn2\n", "n[1-2]"),  # PBS, LSF: a line a process
        ("[gpus]\ngpu01 ansible_host=10.0.0.1\n-oProxyCommand=x\n--hostfile\n", "gpu01"),
        ("gpu1\r\ngpu2\r\n", "gpu[1-2]"),
    ],
)
def test_hosts_of_a_hostfile(tmp_path: Path, text: str, names: str) -> None:
    listing = listing_of(tmp_path, "hostfile", text)
    assert names_of(listing) == names
    assert len(loaded(tmp_path, listing)) == len(listing.hosts)


def test_users_and_ports_come_along(tmp_path: Path) -> None:
    assert data_of(listing_of(tmp_path, "hostfile", WAYS)) == {
        "gpu01": {"ssh_user": "ops"},
        "gpu02": {"ssh_port": 2222, "ssh_user": "root"},
        "node-10-1-0-3": {"ssh_user": "ubuntu", "ssh_hostname": "10.1.0.3"},
        "node-fe80-0000-0000-0000-0000-0000-0000-0017": {"ssh_hostname": "fe80::17"},
    }
    assert data_of(listing_of(tmp_path, "hostfile", MPICH))["gpu03"] == {"ssh_user": "ops"}
    assert data_of(listing_of(tmp_path, "hostfile", RANKS))["gpu02"] == {"ssh_user": "ops"}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (EXCLUDED, "gpu02: left out, a line with ^ excludes it"),
        ("gpu01\n^gpu07\n", "^gpu07: left out, excludes a host that no line names"),
        ("gpu01\n10.0.0.256\n", "looks like an address, and is none"),
        ("gpu01\nhosts:\n  a:\n", "a key of YAML, or no name"),
        (EXCLUDED, "line 4: +n0, line 5: +e:2: left out, hosts by number"),
        (EXCLUDED, "localhost: left out, the machine that it is read on"),
        (WAYS, "10.1.0.3 (node-10-1-0-3)"),
        (MPICH, "line 4: ifname: an option that is not used"),
        ("gpu1\n[gpus]\n", "line 2: [gpus]: left out, a section"),
        ("gpu1\n-oProxyCommand=reboot\n", "line 2: -oProxyCommand=reboot: left out, an option"),
        ("gpu1\n-oProxyCommand=a@gpu2\n", "left out, an option"),
        ("gpu1 user=-oProxyCommand=x\n", "gpu1 (-oProxyCommand=x): not a value for ssh_user"),
        ("-x@gpu1\ngpu2\n", "left out, an option"),
        ("gpu1 port=99999\n", "gpu1 (99999): not a value for ssh_port"),
        ("ops@gpu1\nroot@gpu1\n", "gpu1 (ops, not root): two values of ssh_user, the first counts"),
        ("gpu1\nbad_name\ngpu\x1b]0;x\x07\n", r"line 3: gpu\x1b]0;x\x07 is no list of hosts"),
        ("gpu1\n8\n", "line 2: 8: left out"),
        ("gpu1:2222\n", "line 1: :2222: a number of processes; a port is port=2222"),
        ("gpu1 and more words\n", "words behind the host"),
        ("gpu1:x2\n", "line 1: :x2: no number of processes"),
        ("gpu1,:8\n", "line 1: :8: left out, no host before the colon"),
        ("gpu1\n$(reboot)\n", "$(reboot)"),
    ],
)  # fmt: skip
def test_what_was_left_out_is_named(tmp_path: Path, text: str, part: str) -> None:
    listing = listing_of(tmp_path, "hostfile", text)
    assert part in noted(listing).replace(": left out, cannot be read", "")
    assert noted(listing).replace("\n", "").isprintable()
    assert "ssh_user" not in data_of(listing).get("gpu1", {}) or "ops@" in text


@pytest.mark.parametrize(
    "text",
    ["", "# x\n", "/* gpu1 */", "\0", "x" * 10_000_000, "g[1-99999999]\n", "@\n^\n"],
    ids=range(7),
)
def test_a_text_without_hosts_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="no host in it, read as hostfile"):
        listing_of(tmp_path, "hostfile", text)
