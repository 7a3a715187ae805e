"""The way to a key: jump hosts are held to the same policy, and `trust` records what a server has proved."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import forks
from tests.lab.conftest import _no_leftovers, clusters  # noqa: F401  (a fixture)
from tests.lab.site import COMMAND, Site

pytestmark = pytest.mark.lab

# A server that shows a key which is not its own, and signs with its own: what a scan takes for the host's key.
THIEF = """
import socket, sys, paramiko
class Stolen(paramiko.Ed25519Key):
    def asbytes(self):
        import base64
        return base64.b64decode(sys.argv[1])
key = Stolen(filename=sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    transport = paramiko.Transport(connection)
    transport.add_server_key(key)
    try:
        transport.start_server(server=paramiko.ServerInterface())
    except Exception:
        pass
"""


@pytest.fixture(scope="module")
def site(
    _no_leftovers: None,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    with clusters(tmp_path_factory.mktemp("ways")) as make:
        yield Site(make(count=2))


def reached_by_alias(site: Site, name: str, *, hop: str = "") -> Path:
    """Return the folder of an inventory that reaches a host by an alias of ssh_config, through another."""
    first, second = (host.management_address for host in site.cluster.lab.record().hosts)
    folder = site.folder / name
    folder.mkdir()
    key = site.cluster.lab.paths.key
    (folder / "ssh_config").write_text(
        f"Host door\n  HostName {first}\n  {hop}\nHost inner\n  HostName {second}\n  ProxyJump door\n"
        f"Host *\n  User root\n  IdentityFile {key}\n  UserKnownHostsFile {folder}/known\n"
        f"  GlobalKnownHostsFile /dev/null\n"
    )
    (folder / "inventory.py").write_text(
        "hosts = [('gpu02', {'ssh_hostname': 'inner', 'ssh_user': 'root', "
        f"'ssh_config_file': '{folder}/ssh_config'}})]\n"
    )
    return folder


def remedy(site: Site, folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [site.command("x")[0], name, str(folder / "inventory.py"), *words]
    return forks.run(command, stdin="", seconds=90, environment=os.environ)


@pytest.mark.parametrize(
    "setting",
    [
        "StrictHostKeyChecking accept-new",
        pytest.param("StrictHostKeyChecking no", marks=pytest.mark.full),
    ],
)
def test_no_setting_of_ssh_config_makes_a_jump_host_known(site: Site, setting: str) -> None:
    folder = reached_by_alias(site, setting.split()[-1], hop=setting)
    done = remedy(site, folder, "check")
    assert "at its jump host door: the jump host's ssh key is not known" in done.stdout, done
    assert not (folder / "known").exists()


def test_trust_records_the_jump_host_and_then_what_is_behind_it(site: Site) -> None:
    folder = reached_by_alias(site, "trust")
    done = remedy(site, folder, "trust", "--yes")
    assert done.returncode == 0, done
    first, second = (host.management_address for host in site.cluster.lab.record().hosts)
    recorded = [line.split()[0] for line in (folder / "known").read_text().splitlines()]
    assert recorded == [first, second]
    again = remedy(site, folder, "trust", "--yes")
    assert (again.returncode, "known" in again.stdout) == (0, True), again
    assert len((folder / "known").read_text().splitlines()) == 2
    checked = remedy(site, folder, "check")
    assert "ssh key" not in checked.stdout
    with (folder / "known").open("a") as file:
        file.write(
            f"@revoked * {(folder / 'known').read_text().splitlines()[1].split(' ', 1)[1]}\n"
        )
    revoked = remedy(site, folder, "trust", "--yes", "--replace", "gpu02")
    assert revoked.returncode == 4, revoked
    assert "the key of gpu02 is revoked, and is never recorded" in revoked.stderr
    assert "is REVOKED" in remedy(site, folder, "check").stdout


def test_a_key_that_is_shown_and_not_proved_is_not_recorded(tmp_path: Path) -> None:
    for name in ("mine", "stolen"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True
        )
    stolen = (tmp_path / "stolen.pub").read_text().split()[1]
    thief = subprocess.Popen(
        [sys.executable, "-c", THIEF, stolen, str(tmp_path / "mine")],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert thief.stdout is not None
        port = thief.stdout.readline().strip()
        scan = ["ssh-keyscan", "-p", port, "127.0.0.1"]
        assert stolen in subprocess.run(scan, capture_output=True, text=True, check=False).stdout
        data = {
            "ssh_hostname": "127.0.0.1",
            "ssh_port": int(port),
            "ssh_known_hosts_file": f"{tmp_path}/known",
        }
        (tmp_path / "inventory.py").write_text(f"hosts = [('gpu01', {data!r})]\n")
        done = subprocess.run(
            [COMMAND, "trust", str(tmp_path / "inventory.py"), "--yes"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        thief.kill()
        thief.wait()
    assert done.returncode == 5, done
    assert not (tmp_path / "known").exists()
