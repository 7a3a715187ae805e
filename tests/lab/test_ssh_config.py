"""ssh_config and sudo as docs/connections.md shows them: its own examples, with the addresses of lab hosts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from remedy.lab.rootfs import GUARDED_PASSWORD
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab
PLAIN_AND_MATCH = pytest.mark.parametrize(
    "more",
    [
        pytest.param("", id="plain"),
        pytest.param("Match all\n", id="match", marks=pytest.mark.full),
    ],
)

PAGE = Path(__file__).parents[2] / "docs" / "connections.md"


def example(title: str, number: int) -> str:
    """Return an example of a section of the page."""
    section = PAGE.read_text().split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    return str(re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)[number])


def test_the_ssh_config_of_the_page_leads_to_the_host(cluster: Cluster, tmp_path: Path) -> None:
    site = Site(cluster)
    at = {host.name: host.management_address for host in cluster.lab.record().hosts}
    paths = cluster.lab.paths
    folder = tmp_path / "ssh"
    (folder / "config.d").mkdir(parents=True)

    def placed(text: str) -> str:
        text = text.replace("192.0.2.10", at["gpu02"]).replace("192.0.2.11", at["gpu01"])
        text = text.replace("192.0.2.*", at["gpu01"].rpartition(".")[0] + ".*")
        return text.replace("~/.ssh/cluster", str(paths.key)).replace("User gate", "User trainer")

    own = f"UserKnownHostsFile {paths.known_hosts}\n"
    # OpenSSH looks for relative files of an Include in ~/.ssh: here they are beside the file.
    main = placed(example("ssh_config", 0)).replace("config.d/*", f"{folder}/config.d/*")
    (folder / "config").write_text(own + main)
    (folder / "config.d" / "gpus").write_text(placed(example("ssh_config", 1)))
    site.inventory.write_text(
        example("ssh_config", 2).replace("hosts =", "_hosts =")
        + f"hosts = (_hosts, {{'ssh_config_file': {str(folder / 'config')!r}}})\n"
    )
    start = cluster.host("gpu02").must("date +%s").strip()
    checked = site.remedy("check", "--json")
    assert not checked.document["hosts"]["gpu01"]["error"], checked.text
    for host in (
        "gpu01",
        "gpu02",
    ):  # the host, and its jump host, each as the user that the page names
        log = cluster.host(host).must(f"journalctl -t sshd --since @{start} --no-pager")
        assert "Accepted publickey for trainer" in log, (host, log)


@PLAIN_AND_MATCH
def test_where_ssh_comes_in_by_a_later_key_or_a_line_of_shell_so_does_remedy(
    cluster: Cluster, more: str
) -> None:
    site = Site(cluster)
    at = {host.name: host.management_address for host in cluster.lab.record().hosts}
    paths, other, config = cluster.lab.paths, site.folder / "other", site.folder / "config"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    config.write_text(
        f"Host gpu01\n  HostName {at['gpu01']}\n"
        f"  IdentityFile {site.folder}/nowhere\n  IdentityFile {other}\n"
        f"Host gpu02\n  HostName {at['gpu02']}\n"
        f"  ProxyCommand ssh -F {config} -W %h:%p gpu01 2>/dev/null\n"
        f"Host *\n  User root\n  IdentityFile {paths.key}\n  UserKnownHostsFile {paths.known_hosts}\n{more}"
    )
    site.inventory.write_text(
        f"hosts = (['gpu01', 'gpu02'], {{'ssh_config_file': {str(config)!r}}})\n"
    )
    for host in ("gpu01", "gpu02"):
        subprocess.run(["ssh", "-F", str(config), "-oBatchMode=yes", host, "true"], check=True)
    checked = site.remedy("check", "--json")
    errors = {name: host["error"] for name, host in checked.document["hosts"].items()}
    assert errors == {"gpu01": None, "gpu02": None}, checked.text
    other.unlink()
    config.write_text(config.read_text().replace(str(paths.key), str(other)))
    refused = site.remedy("check", "--limit", "gpu01", "--json")
    assert "IdentityFile in ssh_config" in refused.document["hosts"]["gpu01"]["next_step"]


@PLAIN_AND_MATCH
def test_a_jump_host_that_is_sent_through_itself_is_an_error(cluster: Cluster, more: str) -> None:
    site = Site(cluster)
    config = site.folder / "config"
    config.write_text(f"Host *\n  ProxyJump head\n{more}")
    site.inventory.write_text(f"hosts = (['gpu01'], {{'ssh_config_file': {str(config)!r}}})\n")
    checked = site.remedy("check", "--json")
    assert checked.code == 5, checked.text
    assert "loop via head" in checked.document["hosts"]["gpu01"]["error"]


def test_the_inventory_of_the_page_becomes_root_by_sudo(cluster: Cluster) -> None:
    site = Site(cluster)
    text = example("sudo", 0).replace("PASSWORD", GUARDED_PASSWORD)
    with site.inventory.open("a", encoding="utf-8") as file:
        file.write(
            text.replace("hosts =", "_page =") + "_page = dict(_page)\n"
            "gpus = [(_n, {**_d, **_page[_n]}) for _n, _d in gpus if _n in _page]\n"
        )
    checked = site.remedy("check", "--json")
    assert {name: host["error"] for name, host in checked.document["hosts"].items()} == {
        "gpu01": None,
        "gpu02": None,
    }, checked.text


def test_without_root_the_message_names_the_option_and_the_exit_code_says_so(
    cluster: Cluster,
) -> None:
    site = Site(cluster)
    site.edit_inventory(
        {"gpu01": {"ssh_user": "guarded"}, "gpu02": {"ssh_user": "guarded", "_sudo": True}}
    )
    checked = site.remedy("check", "--limit", "gpu01,gpu02", "--json")
    assert checked.code == 1, checked.text
    hosts = checked.document["hosts"]
    assert "read without root" in hosts["gpu01"]["error"]
    assert "with -K" in hosts["gpu01"]["next_step"]
    assert "sudo asks for a password" in hosts["gpu02"]["error"]
    assert "--ask-sudo-password" in hosts["gpu02"]["next_step"]
