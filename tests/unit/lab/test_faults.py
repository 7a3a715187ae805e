"""The catalogue of faults, and what they make of a hosts file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from remedy.errors import LabError, UsageError
from remedy.lab import faults, net
from remedy.lab.fault import REPAIRED, LabFault, no_log
from remedy.lab.faults import hosts_file
from remedy.lab.host import FRESH_HOSTS, Host
from remedy.lab.paths import LabPaths
from remedy.lab.record import LabRecord


class HostsFile(Host):
    """A host that is nothing but a hosts file."""

    files: dict[str, bytes]

    def read(self, path: str) -> bytes:
        return self.files[path]

    def write(self, path: str, data: bytes) -> None:
        self.files[path] = data


def _host(content: str, count: int = 3) -> HostsFile:
    subnets = ("10.213.0.0/24", "10.214.0.0/24")
    paths = LabPaths.of("some", Path("/nowhere"))
    lab = LabRecord(
        name="some",
        phase="up",
        prefix="gpu",
        root="/root-x",
        management=subnets[0],
        cluster=subnets[1],
        key="",
        known_hosts="",
        python=None,
        binds=[],
        hosts=[net.make_host(f"gpu0{n}", n, *subnets) for n in range(1, count + 1)],
    )
    host = HostsFile(paths, lab, lab.hosts[0])
    object.__setattr__(host, "files", {hosts_file.HOSTS: content.encode()})
    return host


def _after(host: HostsFile) -> str:
    return host.files[hosts_file.HOSTS].decode("latin-1")


def test_every_fault_has_a_name_a_text_and_one_function() -> None:
    catalogue = faults.catalogue()
    assert [one.name for one in catalogue] == sorted({one.name for one in catalogue})
    assert all(one.text and "\n" not in one.text for one in catalogue)
    assert faults.REPLACED in {one.name for one in catalogue}


def test_every_fault_says_how_a_repair_ends_and_what_a_log_shows() -> None:
    assert [gap for entry in faults.catalogue() for gap in entry.gaps] == []


def test_what_a_fault_does_not_say_is_asked_for_in_a_sentence() -> None:
    bare = LabFault("odd", "something", lambda _: None)
    assert [gap.partition("?")[0] for gap in bare.gaps] == [
        "odd: how does `remedy apply` end under it",
        "odd: what does the log of a job show of it",
    ]
    assert not replace(bare, repair=REPAIRED, log=no_log("nobody is at work")).gaps


def test_an_unknown_fault_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="hosts-crlf"):
        faults.get("host-crlf")
    with pytest.raises(UsageError, match="--list"):
        faults.get("zzz")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="hosts-crlf"):
        faults.fault("hosts-crlf", "again")(lambda _: None)


def test_a_stale_entry_takes_the_place_of_the_right_one() -> None:
    host = _host("127.0.0.1 localhost\n# begin\n10.214.0.12 gpu02 # ours\n# end\n")
    hosts_file.stale_peer_entry(host)
    hosts_file.stale_peer_entry(host)
    assert _after(host) == (
        "127.0.0.1 localhost\n# begin\n10.214.0.230\tgpu02\n10.214.0.231\tgpu-left\n# end\n"
    )


def test_a_stale_entry_is_added_where_there_was_none() -> None:
    host = _host(FRESH_HOSTS)
    hosts_file.stale_peer_entry(host)
    assert _after(host) == FRESH_HOSTS + "10.214.0.230\tgpu02\n10.214.0.231\tgpu-left\n"


def test_a_loopback_name_replaces_the_one_that_is_there() -> None:
    host = _host(FRESH_HOSTS)
    hosts_file.loopback_name(host)
    hosts_file.loopback_name(host)
    assert _after(host) == FRESH_HOSTS.replace("127.0.1.1\tnode", "127.0.1.1\tgpu01")


def test_peers_are_forgotten_and_nothing_else() -> None:
    host = _host("127.0.0.1 localhost\n10.214.0.12 gpu02 x\n10.0.0.1 gpu021 # gpu02\n")
    hosts_file.no_peer_entries(host)
    assert _after(host) == "127.0.0.1 localhost\n10.0.0.1 gpu021 # gpu02\n"


def test_a_conflicting_line_wins_over_a_later_one() -> None:
    host = _host("127.0.0.1 localhost\n10.214.0.12 gpu02\n")
    hosts_file.conflicting_line(host)
    hosts_file.conflicting_line(host)
    lines = _after(host).splitlines()
    assert len(lines) == 3
    assert lines[1].split()[:2] == ["10.214.0.250", "gpu02"]


def test_line_endings_are_changed_once() -> None:
    host = _host("a\r\nb\n")
    hosts_file.hosts_crlf(host)
    hosts_file.hosts_crlf(host)
    assert _after(host) == "a\r\nb\r\n"


def test_a_fault_about_peers_needs_peers() -> None:
    with pytest.raises(LabError, match="no peers"):
        hosts_file.conflicting_line(_host(FRESH_HOSTS, count=1))


DECLARED = """
from remedy.lab.faults import fault
from remedy.lab.host import Host

@fault("of-a-file", "a fault that a test declares beside itself")
def of_a_file(host: Host) -> None:
    host.must(["true"])
"""


def test_a_file_declares_faults_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_faults", dict(faults._faults))
    path = tmp_path / "test_mine.py"
    path.write_text(DECLARED, encoding="utf-8")
    faults.load_file(path)
    assert faults.get("of-a-file") in faults.catalogue()


@pytest.mark.parametrize("text", ["import nowhere\n", "1 / 0\n", "fault(\n"])
def test_a_file_of_faults_that_cannot_be_loaded(tmp_path: Path, text: str) -> None:
    path = tmp_path / "test_mine.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"test_mine\.py cannot be loaded"):
        faults.load_file(path)
