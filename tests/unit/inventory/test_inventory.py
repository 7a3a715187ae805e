"""The inventory: what cannot be a cluster is refused, with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import InventoryError
from remedy.inventory import Inventory
from remedy.transport.reader import load_inventory


def load(tmp_path: Path, text: str) -> Inventory:
    path = tmp_path / "inventory.py"
    path.write_text(text)
    return load_inventory(path)


def test_hosts_groups_and_data_are_read_as_pyinfra_reads_them(tmp_path: Path) -> None:
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data" / "gpus.py").write_text("ssh_user = 'ops'\n")
    inventory = load(
        tmp_path,
        'gpus = [("gpu01", {"ssh_hostname": "10.0.0.1"}),\n'
        '  ("gpu02", {"ssh_hostname": "10.0.0.2", "ssh_port": 2222})]\n'
        'login = ["login1"]\n',
    )
    assert inventory.names == ("gpu01", "gpu02", "login1")
    assert inventory.node("gpu02").ssh_port == 2222
    assert inventory.node("gpu01").data["ssh_user"] == "ops"
    assert "gpus" in inventory.node("gpu01").groups
    assert inventory.groups["gpus"] == inventory.select(["gpus"]) == ("gpu01", "gpu02")
    assert inventory.select(["*1"]) == ("gpu01", "login1")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "names no host"),
        ("hosts = []", "names no host"),
        ("hosts = ['a'\n", "line 1"),
        ("x = 1\nhosts = [undefined]\n", "line 2: NameError"),
        ("import nothing_of_that_name\n", "line 1: ModuleNotFoundError"),
        ("hosts = ['gpu01', 'gpu01']", "'gpu01' 2 times"),
        ("hosts = ['gpu01', 'GPU01']", "same host name"),
        (f"hosts = {[(n, {'ssh_hostname': '10.0.0.1'}) for n in 'ab']}", "the same ssh address"),
        (f"hosts = {[(n, {'cluster_address': '10.0.0.1'}) for n in 'ab']}", "the same cluster_address"),
        ("hosts = ['10.0.0.1']", "is an address"),
        ("hosts = ['gpu_01']", "not a legal host name"),
        ("hosts = ['-gpu']", "not a legal host name"),
        ("hosts = ['a' * 65]", "not a legal host name"),
        ("hosts = ['$(reboot)']", "not a legal host name"),
        ("hosts = ['@local']", "connector"),
        ("hosts = [('a', {'cluster_address': '127.0.0.1'})]", "cannot be reached"),
        ("hosts = [('a', {'cluster_address': 'fd00::1'})]", "cannot be reached"),
        ("hosts = [('a', {'cluster_address': 'elephant'})]", "not an IP address"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_cluster_is_refused(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(InventoryError) as caught:
        load(tmp_path, text)
    assert part in caught.value.message
    assert str(tmp_path / "inventory.py") in caught.value.message
    assert caught.value.next_step
    assert caught.value.exit_code == 2


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="no such inventory"):
        load_inventory(tmp_path / "nowhere.py")


def test_a_limit_that_selects_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="--limit gpu9"):
        load(tmp_path, "hosts = ['gpu01']").select(["gpu9"])
