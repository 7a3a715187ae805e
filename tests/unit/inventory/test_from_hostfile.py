"""Hosts of hostfiles, as Open MPI, MPICH, DeepSpeed and batch systems have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import UsageError
from remedy.inventory.elsewhere import read_hosts
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
        ("[gpus]\ngpu01\n-oProxyCommand=x\n--hostfile\n", "gpu01"),
        ("gpu1\r\ngpu2\r\n", "gpu[1-2]"),
    ],
)
def test_hosts_of_a_hostfile(tmp_path: Path, text: str, names: str) -> None:
    listing = listing_of(tmp_path, "hostfile", text)
    assert names_of(listing) == names
    assert len(loaded(tmp_path, listing)) == len(listing.hosts)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[gpus]\ngpu01\n\n[rack:children]\ngpus\n", "line 4 is [rack:children]"),
        ("[gpus]\ngpu01\n[all:vars]\nansible_user=ops\n", "line 3 is [all:vars]"),
        ("gpu00\ngpu01 x=1 ansible_host=10.0.0.1\n", "line 2 is gpu01 x=1 ansible_host="),
    ],
)
def test_an_inventory_of_ansible_is_no_hostfile(tmp_path: Path, text: str, line: str) -> None:
    """A group would become a host, and a host would lose its address."""
    with pytest.raises(UsageError) as caught:
        listing_of(tmp_path, "hostfile", text)
    assert f"an inventory of Ansible, and no hostfile: {line}" in caught.value.message
    assert caught.value.next_step.startswith("remedy init --from ansible ")
    assert (
        names_of(listing_of(tmp_path, "hostfile", f"# {text.splitlines()[-1]}\ngpu1\n")) == "gpu1"
    )


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
        ("gpu[1-3]\n^gpu[2-3]\n", "gpu[2-3]: left out, a line with ^ excludes it"),
        ("gpu1\n^\n", "line 2: ^: left out, excludes no host"),
        ("gpu01\n10.0.0.256\n", "looks like an address, and is none"),
        ("gpu1\n0.0.0.0\n224.0.0.1\n", "line 3: 224.0.0.1: left out, the address of no machine"),
        ("gpu1\n127.0.0.2\n::1\n", "127.0.0.2, ::1: left out, the machine that it is read on"),
        ("gpu1\nfe80::1::2\n", "line 2: fe80::1::2: left out, neither an address nor a host"),
        ("gpu1\n[fe80::1]:22\n", "(fe80::1): a link-local address, to which ssh needs the interface"),
        ("gpu1\nHost gpu02\n  HostName 10.0.0.2\n", "line 3: HostName 10.0.0.2: left out, a line of ssh"),
        ("gpu1\nssh://ops@gpu2\nhttp://gpu3/\n", "line 3: http://gpu3/: left out, a URL"),
        ("gpu1\ngpu2,10.0.0.3\n", "line 2: gpu2,10.0.0.3: names and addresses in one line"),
        ("gpu1\ngpu[2-3],x[a-]\n", "line 2: gpu[2-3],x[a-]: x[a-] is no list of hosts"),
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
    ["", "# x\n", "/* gpu1 */", "é" * 999, "x" * 10_000_000, "g[1-99999999]\n", "@\n^\n"],
    ids=range(7),
)
def test_a_text_without_hosts_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="no host in it, read as hostfile"):
        listing_of(tmp_path, "hostfile", text)


def test_addresses_in_brackets_have_ports_behind_them(tmp_path: Path) -> None:
    text = "[fe80::1%ib0]:2222\nops@[10.0.0.1]:22\n[2001:db8::1]\n[gpu01]:2200\n[gpus]\n"
    listing = listing_of(tmp_path, "hostfile", text)
    assert list(data_of(listing).values()) == [
        {"ssh_hostname": "fe80::1%ib0", "ssh_port": 2222},
        {"ssh_hostname": "10.0.0.1", "ssh_port": 22, "ssh_user": "ops"},
        {"ssh_hostname": "2001:db8::1"},
        {"ssh_port": 2200},
    ]
    assert len(loaded(tmp_path, listing)) == 4
    assert "line 5: [gpus]: left out, a section" in noted(listing)


@pytest.mark.parametrize("content", [b"\x7fELF\2\1\1\0" * 99, b"gpu01\n\x01\x02", b"\0"])
def test_what_is_no_text_is_not_printed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "theirs").write_bytes(content)
    with pytest.raises(UsageError, match=r"theirs: no text: line \d has the byte 0x0\d") as caught:
        read_hosts("hostfile", str(tmp_path / "theirs"))
    assert len(caught.value.message) < len(str(tmp_path)) + 60


def test_what_has_no_host_is_said_in_few_words(tmp_path: Path) -> None:
    text = "".join(f"{'é' * 50}{n}\n[{n}]\n-{n}\n+{n}\n" for n in range(100))
    with pytest.raises(UsageError) as caught:
        listing_of(tmp_path, "hostfile", text)
    assert len(caught.value.message) < len(str(tmp_path)) + 600
    assert caught.value.next_step.endswith("a different kind: ansible, clustershell, slurm.")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_file_of_windows_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "theirs").write_bytes("gpu01\r\ngpu02 slots=8\r\n".encode(encoding))
    assert names_of(read_hosts("hostfile", str(tmp_path / "theirs"))) == "gpu[01-02]"


@pytest.mark.parametrize(
    ("kind", "source", "message", "step"),
    [
        ("slrum", "x", "--from slrum: there is no such kind; did you mean 'slurm'?", "Kinds: ansible, "),
        ("hosts.txt", "slurm", "--from hosts.txt: there is no such kind", "--from slurm hosts.txt"),
        ("slurm", "--directory", "--from slurm: --directory is an option, and no path", "--from slurm PATH"),
        ("slurm", "nowhere", "nowhere: No such file or directory", "Give a text file"),
        ("ansible", "nowhere", "nowhere: no such file or folder", "names with a comma"),
    ],
)  # fmt: skip
def test_kinds_and_paths_that_there_are_none_of(
    kind: str, source: str, message: str, step: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read_hosts(kind, source)
    assert caught.value.message == message
    assert step in caught.value.next_step
