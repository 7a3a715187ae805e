"""The ways to hosts that ssh_config and name servers give: each ends, and nothing reads the terminal."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.lab.conftest import Cluster, clusters
from tests.lab.site import RemedyOutput, Site
from tests.lab.terminal import on_a_terminal

pytestmark = pytest.mark.lab

DEADLINES = "ssh: {name: 8, connect: 8, key_exchange: 12}\n"
NO_TIMEOUT = "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n"
# Enough to fill the pool in which gevent looks names up, were it left as it is.
NAMES = [f"name{number:02d}" for number in range(12)]
PROMPTS = ("[y/n]", "(yes/no", "sudo password:", "Enter password", "passphrase for", "assword:")
# gpu01 and gpu02 are well; the second is reached through the first.
ENDS = {
    "gpu03": ("at its jump host stranger", "the jump host's ssh key is not known"),
    "gpu04": ("its ProxyCommand ended", "Host key verification failed"),
    "gpu05": ("at its jump host 10.", "stuck in the stage 'key exchange'"),
    "gpu06": ("stuck in the stage 'key exchange'", "sshd did not exchange keys"),
    "gpu07": ("the ssh key is encrypted", "gpu07"),
    "gpu08": ("at its jump host 10.", "no connection from there to the host"),
    "gpu09": ("sudo asks for a password", "gpu09"),
    **{name: ("stuck in the stage 'name'", f"{name}.example") for name in NAMES},
}


@dataclass(frozen=True)
class Ways:
    """One check of them on a terminal, and the same as a document."""

    shown: RemedyOutput
    document: RemedyOutput


@pytest.fixture(scope="module")
def ways(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    with clusters(tmp_path_factory.mktemp("ways")) as make:
        site = Site(make(count=9))
        _break(site.cluster)
        _lay_ways(site)
        command = ["timeout", "150", *_with_a_dead_name_server(site)]
        document = subprocess.run(
            [*command, *site.command("check", "--json")],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        yield Ways(
            on_a_terminal([*command, *site.command("check")], []),
            RemedyOutput(document.returncode, document.stdout, document.stderr),
        )


def _break(cluster: Cluster) -> None:
    cluster.fault("gpu06", "sshd-frozen")
    cluster.host("gpu06").must(
        "nft add table inet lab_names; nft 'add chain inet lab_names input "
        "{ type filter hook input priority -300; policy accept; }'; "
        "nft add rule inet lab_names input udp dport 53 drop"
    )
    cluster.fault("gpu08", "unreachable")
    cluster.fault("gpu09", "shell-chatters")
    cluster.host("gpu09").write("/usr/local/bin/timeout", NO_TIMEOUT.encode())
    cluster.host("gpu09").must("chmod 755 /usr/local/bin/timeout")


def _lay_ways(site: Site) -> None:
    """Write the ssh_config, the hosts whose names nobody answers for, and an encrypted key."""
    paths = site.cluster.lab.paths
    at = {host.name: host.management_address for host in site.cluster.lab.record().hosts}
    (site.folder / "remedy.yaml").write_text(DEADLINES)
    config = site.folder / "ssh_config"
    config.write_text(
        f"Host {at['gpu02']} {at['gpu08']}\n  ProxyJump {at['gpu01']}\n"
        f"Host {at['gpu03']}\n  ProxyJump stranger\n"
        f"Host stranger\n  HostName {at['gpu01']}\n  UserKnownHostsFile /dev/null\n"
        f"Host {at['gpu04']}\n  ProxyCommand ssh -F /dev/null -o UserKnownHostsFile=/dev/null "
        f"-i {paths.key} -W %h:%p root@{at['gpu01']}\n"
        f"Host {at['gpu05']}\n  ProxyJump {at['gpu06']}\n"
        f"Host *\n  User root\n  IdentityFile {paths.key}\n  UserKnownHostsFile {paths.known_hosts}\n"
    )
    key = site.folder / "encrypted"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "a passphrase", "-f", key], check=True
    )
    with site.inventory.open("a", encoding="utf-8") as file:
        file.write(
            f"_names = {NAMES!r}\n"
            "gpus += [(_n, {'ssh_hostname': f'{_n}.example', 'ssh_user': 'root'}) for _n in _names]\n"
            f"gpus = [(_n, {{**_d, 'ssh_config_file': {str(config)!r}}}) for _n, _d in gpus]\n"
        )
    site.edit_inventory({"gpu07": {"ssh_key": str(key)}})


def _with_a_dead_name_server(site: Site) -> list[str]:
    """Return what runs a command with a name server that takes every question and answers none."""
    address = site.cluster.host("gpu06").record.management_address
    resolver = site.folder / "resolv.conf"
    resolver.write_text(f"nameserver {address}\noptions timeout:30 attempts:5\n")
    return [
        *("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"'),
        str(resolver),
    ]


def test_each_way_ends_and_says_where(ways: Ways) -> None:
    hosts = ways.document.document["hosts"]
    assert {name for name, host in hosts.items() if not host["error"]} == {"gpu01", "gpu02"}
    assert hosts.keys() == {"gpu01", "gpu02", *ENDS}
    for name, texts in ENDS.items():
        for text in texts:
            assert text in hosts[name]["error"], name


def test_nothing_but_remedy_asks_at_the_terminal(ways: Ways) -> None:
    assert "stuck in the stage 'name'" in ways.shown.text
    assert not [prompt for prompt in PROMPTS if prompt in ways.shown.text]
    assert ways.shown.code == ways.document.code == 1
