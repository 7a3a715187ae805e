"""Hosts of Slurm: slurm.conf as sites have it, and what scontrol and sinfo of Slurm 22.05.8 printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import UsageError
from remedy.inventory.elsewhere import read_hosts, slurm_keys
from tests.unit.inventory.elsewhere import data_of, listing_of, loaded, names_of, noted, type_in

PRINTS = Path(__file__).parents[1] / "data" / "slurm"
ALL = "c-1-3,gpu[01-02],r[1-2]n[01-03]"
BY_NAME = "gpu[01-03],r[1-2]n[01-03]"

# The example in slurm.conf(5), with what follows it in many a site's file.
LLNL = """
SlurmctldHost=dev0(12.34.56.78) # Primary server
SlurmctldHost=dev1(12.34.56.79) # Backup server
AuthType=auth/munge
# Node Configurations
#NodeName=linux[1-32] CPUs=1 State=UNKNOWN
NodeName=DEFAULT CPUs=2 RealMemory=2000 TmpDisk=64000
NodeName=DEFAULT State=UNKNOWN
NodeName=dev[0-25] NodeAddr=edev[0-25] Weight=16
DownNodes=dev20 State=DOWN Reason="power,ETA=Dec25"
PartitionName=DEFAULT MaxTime=30 MaxNodes=10 State=UP
PartitionName=debug Nodes=dev[0-8,18-25] Default=YES
"""
CONTINUED = """
clustername = hydra
NODENAME = gpu[01-02] \\
    nodeaddr = 10.0.0.[1-2] \\
    Gres=gpu:8 # eight
nodename=login1,big[1,3-4]
NodeSet=fast Nodes=gpu[01-02]
FrontendName=front1
"""
CLOUD = """
NodeName=DEFAULT CPUs=4 State=CLOUD
NodeName=cluster-compute-0-[0-3] Gres=gpu:8
NodeName=static1 State=UNKNOWN
NodeName=later[1-2] State=FUTURE
NodeSet=x Feature=cloud
"""
# Of a NodeName line, of a line of its own, and of none: see the notes that each gets.
MISSPELT = """
NodeNme=a0
NodeName=a1 NodeAdr=10.0.0.1
FrontendName=front1 FrontendAddr=10.0.0.9
PartitonName=p Nodes=ALL
PartitionName=p Nodes=ALL Dfault=YES
NodeAddr=10.0.0.2
NodeName=a2, a3
zzzz=1
"""
MULTIPLE_SLURMD = (
    "NodeName=c[1-10] NodeHostName=localhost NodeAddr=127.0.0.1\nNodeName=m1 NodeHostname=real7\n"
)
RANGES = "NodeName=lx[0001-3,10],a[9-010] NodeAddr=x[1-6]\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (LLNL, "dev[0-25]"),
        (CONTINUED, "big[1,3-4],gpu[01-02],login1"),
        (CLOUD, "cluster-compute-0-[0-3],static1"),
        (MULTIPLE_SLURMD, "real7"),
        (RANGES, "a[9-10],lx[10,0001-0003]"),
        ("NodeName=a1 Reason=NodeName=b1 Feature=\"NodeName=c1\"\n", "a1"),
        ("NodeName=a1\r\nNodeName=a2\r\n", "a[1-2]"),
        ("\ufeffNodeName=a1\n", "a1"),
        ("gpu[01-02],login1\n", "gpu[01-02],login1"),
    ],
)  # fmt: skip
def test_the_nodes_of_a_slurm_conf_and_nothing_else_are_hosts(
    tmp_path: Path, text: str, names: str
) -> None:
    listing = listing_of(tmp_path, "slurm", text)
    assert names_of(listing) == names
    assert len(loaded(tmp_path, listing)) == len(listing.hosts)


def test_addresses_go_with_their_nodes(tmp_path: Path) -> None:
    assert loaded(tmp_path, listing_of(tmp_path, "slurm", LLNL))["dev20"] == "edev20"
    assert loaded(tmp_path, listing_of(tmp_path, "slurm", CONTINUED))["gpu02"] == "10.0.0.2"
    twice = "NodeName=a1 NodeAddr=10.0.0.1 NodeAddr=10.0.0.2\n"
    assert loaded(tmp_path, listing_of(tmp_path, "slurm", twice))["a1"] == "10.0.0.2"


def test_the_host_name_is_what_the_machine_is_called(tmp_path: Path) -> None:
    text = "NodeName=n[1-2] NodeHostname=host-[01-02].example.org NodeAddr=10.0.0.[1-2]\n"
    hosts = data_of(listing_of(tmp_path, "slurm", text))
    assert hosts == {
        "host-01.example.org": {"ssh_hostname": "10.0.0.1"},
        "host-02.example.org": {"ssh_hostname": "10.0.0.2"},
    }


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (CLOUD, "later[1-2]: left out, State=FUTURE"),
        (CLOUD, "cluster-compute-0-[0-3]: State=CLOUD"),
        (CONTINUED, "line 8: front1: left out, a front end, and no node"),
        (MULTIPLE_SLURMD, "localhost: left out, the machine that it is read on"),
        (MULTIPLE_SLURMD, "m1 (real7): a NodeName and its NodeHostname"),
        (MISSPELT, "line 2: NodeNme=a0: left out, no key of slurm.conf; did you mean 'NodeName'?"),
        (MISSPELT, "line 3: NodeAdr=10.0.0.1: not used, no key behind NodeName; did you mean 'NodeAddr'?"),
        (MISSPELT, "line 4: front1: left out, a front end, and no node"),
        (MISSPELT, "line 5: PartitonName=p Nodes=ALL: left out, no key of slurm.conf"),
        (MISSPELT, "line 6: Dfault=YES: not used, no key behind PartitionName; did you mean 'Default'?"),
        (MISSPELT, "line 7: NodeAddr=10.0.0.2: left out, belongs behind NodeName"),
        (MISSPELT, "line 8: a3: not used, no setting of the form KEY=VALUE"),
        (MISSPELT, "line 9: zzzz=1: left out, no key of slurm.conf"),
        ("NodeName=a1 NodeHostname=h[1-2]\n", "line 1: a1: not as many NodeHostname as nodes"),
        ("NodeName=a[1-2] NodeHostname=h1\n", "line 1: a[1-2]: several nodes on one host"),
        ("NodeName=a1 NodeAddr=1.2.3\n", "a1 (1.2.3): not a value for ssh_hostname"),
        ("NodeName=a1 NodeAddr=0.0.0.0\n", "a1 (0.0.0.0): not a value for ssh_hostname"),
        ("NodeName=a1 NodeAddr=127.0.0.1\n", "a1 (127.0.0.1): the address of whichever machine"),
        ("NodeName=a1 NodeAddr=fe80::1\n", "a1 (fe80::1): a link-local address"),
        ("NodeName=a1\nNodeName=10.0.0.300\n", "line 2: 10.0.0.300: left out, looks like an address"),
        ("NodeName=DEFAULT NodeAddr=10.0.0.1\nNodeName=a1\n", "NodeAddr=10.0.0.1: not used, Slurm refuses it"),
        ("NodeName=a1 NodeAddr=10.0.0.1 NodeAddr=10.0.0.2\n", "line 1: NodeAddr: there twice"),
        ("NodeName=a[1-3]\nNodeName=a[3-4]\n", "a3: there twice, which Slurm refuses"),
        ("NodeName=a1\nNodeName=,\n", "line 2: NodeName=,: left out, no node"),
        ("NodeName=a1\nNodeName=b[1-2],x[3-1]\n", "line 2: b[1-2],x[3-1]: x[3-1] is no list of hosts"),
        ("NodeName=a1\nInclude *.conf\n", "line 2: *.conf: left out, Slurm reads no * in an Include"),
        ("NodeName=a1\nInclude b.conf c.conf\n", "line 2: c.conf: not used, no setting"),
        ("NodeName=a[1-3] NodeAddr=10.0.0.[1-2]\n", "not as many NodeAddr as nodes"),
        ("NodeName=a1\nNodeName=x[a-f]\n", "line 2: x[a-f] is no list of hosts"),
        ("NodeName=a1\nNodeName=bad_name\n", "line 2: bad_name: left out, no host name"),
        ("NodeName=a1 NodeAddr=10.0.0.1\nNodeName=a1 NodeAddr=10.0.0.2\n",
         "a1 (10.0.0.1, not 10.0.0.2): two values of ssh_hostname"),
        ("NodeName=a1\nstray\n", "line 2: stray: left out, is no setting"),
        ("NodeName=a1\nInclude nodes.conf\n", "line 2: nodes.conf: left out, this Include cannot be read"),
        ("NodeName=a1\nInclude %c.conf\n", "ClusterName does not come before"),
        ("NodeName=a1\nInclude theirs\n", "line 2: theirs: left out, the Include is of the file that it is in"),
        ("NodeName=a1\nNodeName=ALL\n", "NodeName=ALL is reserved"),
        ("NodeName=a1\nNodeName=-oProxyCommand=reboot\n", "-oProxyCommand=reboot is no list of hosts"),
        ("NodeName=a1 NodeAddr=-oProxyCommand=x\n", "-oProxyCommand=x is no list of hosts: not a NodeAddr"),
        ("NodeName=a1\nNodeName=b\x1b[31m\n", r"b\x1b[31m"),
    ],
)  # fmt: skip
def test_what_was_left_out_is_named(tmp_path: Path, text: str, part: str) -> None:
    assert part in noted(listing_of(tmp_path, "slurm", text))


def test_includes_are_read_from_the_folder_of_slurm_conf(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "vega.conf").write_text("include more.conf\nNodeName=gpu[1-2]\n")
    (tmp_path / "more.conf").write_text("NodeName=gpu3\n")
    (tmp_path / "nodes" / "more.conf").write_text("NodeName=other\n")
    text = "ClusterName=Vega\nINCLUDE nodes/%c.conf\nNodeName=gpu4\n"
    listing = listing_of(tmp_path, "slurm", text, "slurm.conf")
    assert names_of(listing) == "gpu[1-4]"
    assert not listing.notes


def test_every_key_that_slurm_knows_is_silent(tmp_path: Path) -> None:
    nodes = " ".join(f"{key}=1" for key in slurm_keys.OF_NODES if not key.startswith("Node"))
    lines = [f"{key.upper()}=1" for key in slurm_keys.SETTINGS - {"NodeName", "FrontendName"}]
    listing = listing_of(tmp_path, "slurm", "\n".join([*lines, f"NodeName=a1 {nodes}"]))
    assert len(lines) > 250
    assert not listing.notes


def test_what_slurm_prints_as_json_is_no_slurm_conf(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="JSON; of Slurm text is read") as caught:
        listing_of(tmp_path, "slurm", '{"nodes": [{"name": "a1"}]}')
    assert "scontrol show nodes -o" in caught.value.next_step


def test_includes_in_a_circle_or_without_end_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("Include slurm.conf\nNodeName=gpu2\n")
    (tmp_path / "c.conf").write_text("Include d.conf\n" * 400)
    (tmp_path / "d.conf").write_text("Include b.conf\n" * 400)
    text = "NodeName=gpu1\nInclude b.conf\nInclude c.conf\n"
    listing = listing_of(tmp_path, "slurm", text, "slurm.conf")
    assert names_of(listing) == "gpu[1-2]"
    assert "the Include is of the file that it is in, or of one above" in noted(listing)
    assert "more than 500 files are included" in noted(listing)


def test_a_pipe_that_is_included_keeps_nobody_waiting(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    listing = listing_of(tmp_path, "slurm", "Include pipe\nNodeName=a1\n")
    assert "pipe: left out, this Include cannot be read" in noted(listing)


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("scontrol-show-nodes-o", ALL),
        ("scontrol-show-nodes", ALL),
        ("sinfo", BY_NAME),
        ("sinfo-l", BY_NAME),
        ("sinfo-s", BY_NAME),
        ("sinfo-h", BY_NAME),
        ("sinfo-N-l", BY_NAME),
        ("sinfo-O", BY_NAME),
        ("sinfo-R", "gpu03"),
    ],
)
def test_what_slurm_prints_is_read_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, names: str
) -> None:
    type_in(monkeypatch, (PRINTS / f"{file}.txt").read_text())
    listing = read_hosts("slurm", "-")
    assert names_of(listing) == names
    if file in ("scontrol-show-nodes-o", "scontrol-show-nodes", "sinfo-O"):
        assert loaded(tmp_path, listing)["r2n03"] == "10.9.1.6"


def test_nodes_that_are_powered_down_are_left_out(tmp_path: Path) -> None:
    text = (PRINTS / "scontrol-show-nodes-o.txt").read_text()
    listing = listing_of(
        tmp_path, "slurm", text.replace("State=UNKNOWN", "State=IDLE+CLOUD+POWERED_DOWN", 1)
    )
    assert "gpu01: left out, State=IDLE+CLOUD+POWERED_DOWN" in noted(listing)
    text = "NODELIST NODES PARTITION STATE\ngpu1 1 p* idle~\ngpu2 1 p* mix*\n"
    assert names_of(listing_of(tmp_path, "slurm", text)) == "gpu2"


def test_a_header_that_comes_again_is_no_host(tmp_path: Path) -> None:
    first, second = (PRINTS / "sinfo.txt").read_text(), (PRINTS / "sinfo-N-l.txt").read_text()
    text = f"CLUSTER: vega\n{first}\nCLUSTER: lyra\n{second.replace('gpu', 'big')}"
    listing = listing_of(tmp_path, "slurm", text)
    assert names_of(listing) == "big[01-03],gpu[01-03],r[1-2]n[01-03]"


def test_what_an_administrator_wrote_is_no_address(tmp_path: Path) -> None:
    text = (PRINTS / "scontrol-show-nodes-o.txt").read_text()
    text = text.replace("Reason=power,", "Reason=x NodeAddr=6.6.6.6 NodeName=evil")
    assert loaded(tmp_path, listing_of(tmp_path, "slurm", text))["c-1-3"] == "10.9.0.3"
    # A reason of several words in front of the names.
    table = "REASON               NODELIST  STATE\nnot responding now   gpu[1-2] down*\n"
    assert names_of(listing_of(tmp_path, "slurm", table)) == "gpu[1-2]"


# What such a text begins with, what it repeats, and what it ends with.
LONG = (
    ("", "#", ""), ("NodeName=", "\\#", ""), ("NodeName=a_", "x", ""), ("NodeName=", "[", ""),
    ("NodeName=", ",_", "\nNodeName=x\x1b"), ("NodeName=x", "\x1b", ""),
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing\n", "ClusterName=x\nPartitionName=p Nodes=gpu[1-4]\n", "NodeNme=a1\n" * 3000,
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n7 gpu train me R 1:00 2 gpu[01-02]\n",
        "NodeName=g[1-9999999999]\n", "NodeName=" + ",".join(f"g{n}[1-1000000]" for n in range(99)),
        *(
            pytest.param(head + part * (length // len(part)) + end, marks=marks)
            for length, marks in ((20_000, ()), (10_000_000, pytest.mark.full))
            for head, part, end in LONG
        ),
    ],
    ids=range(7 + 2 * len(LONG)),
)  # fmt: skip
def test_a_text_without_hosts_is_refused_however_long_it_is(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="no host in it, read as slurm") as caught:
        listing_of(tmp_path, "slurm", text)
    assert len(caught.value.message) < 2000
    assert caught.value.message.isprintable()
