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


def test_a_file_is_run_once(tmp_path: Path) -> None:
    """It may ask a cloud for its hosts: slow, and never the same twice."""
    counted = 'open(__file__ + ".runs", "a").write("run\\n")\n'
    inventory = load(tmp_path, f'{counted}hosts = [("gpu01", {{"ssh_hostname": "10.0.0.1"}})]\n')
    assert inventory.names == ("gpu01",)
    assert (tmp_path / "inventory.py.runs").read_text() == "run\n"


def test_a_file_that_was_edited_is_read_anew(tmp_path: Path) -> None:
    assert load(tmp_path, 'hosts = ["gpu01"]\n').names == ("gpu01",)
    assert load(tmp_path, 'hosts = ["gpu01", "gpu02"]\n').names == ("gpu01", "gpu02")


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
    near = tmp_path / "inventory.py"
    near.write_text("hosts = ['gpu01']\n")
    with pytest.raises(InventoryError, match="no such inventory") as caught:
        load_inventory(tmp_path / "invntory.py")
    assert caught.value.next_step == f"Did you mean {near}?"


def test_a_limit_that_selects_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="--limit gpu9"):
        load(tmp_path, "hosts = ['gpu01']").select(["gpu9"])


@pytest.mark.parametrize(
    ("data", "nearest"),
    [
        ({"ssh_hostnme": "10.0.0.1"}, "did you mean 'ssh_hostname'"),
        ({"cluster_adress": "10.0.0.1"}, "did you mean 'cluster_address'"),
        ({"pyhton": "/x"}, "did you mean 'python'"),
        ({"hostname": "10.0.0.1"}, "did you mean 'ssh_hostname'"),
        ({"user": "ops"}, "did you mean 'ssh_user'"),
        ({"SSH-User": "ops"}, "did you mean 'ssh_user'"),
        ({"ansible_host": "10.0.0.1"}, "did you mean 'ssh_hostname'"),
        ({"ansible_user": "ops", "ssh_user": "ops"}, "did you mean 'ssh_user'"),
        ({"ansible_become": True}, "did you mean '_sudo'"),
        ({"ansible_ssh_private_key_file": "x"}, "did you mean 'ssh_key'"),
        ({"ansible_connection": "ssh"}, "no key 'ansible_connection' of a host"),
        ({"sudo": True}, "did you mean '_sudo'"),
        ({"_sudopassword": "x"}, "did you mean '_sudo_password'"),
        ({"ssh_elephant": 1}, "no key 'ssh_elephant' of a host"),
    ],
)
def test_a_misspelt_key_of_a_host_names_the_nearest(
    tmp_path: Path, data: dict[str, object], nearest: str
) -> None:
    with pytest.raises(InventoryError) as caught:
        load(tmp_path, f"hosts = [('gpu01', {data}), ('gpu02', {data})]")
    assert nearest in caught.value.message
    assert "gpu[01-02]" in caught.value.message
    assert "cluster_address" in caught.value.next_step


def test_data_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    data = {"rack": "r1", "user": "app", "ssh_user": "ops", "app_version": 3, "_sudo": True}
    assert load(tmp_path, f"hosts = [('gpu01', {data})]").node("gpu01").data["rack"] == "r1"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a = [('g1', {'ssh_user': 'x'})]\nb = [('g1', {'ssh_user': 'y'})]",
         "g1 has two values of 'ssh_user': 'x' in 'a' and 'y' in 'b'"),
        ("a = (['g1'], {'python': 'x'})\nb = (['g1'], {'python': 'y'})",
         "g1 has two values of 'python': 'x' in 'a' and 'y' in 'b'"),
        ("a = [('g1', {'_sudo_password': 'x1'})]\nb = [('g1', {'_sudo_password': 'y1'})]",
         "(secret) in 'a' and (secret) in 'b'"),
        ("a = [\n  ('g1', {'ssh_port': 22, 'ssh_user': 'x', 'ssh_port': 23})]",
         "line 2: 'ssh_port' has two values, 22 and 23"),
    ],
)  # fmt: skip
def test_two_values_for_one_host_are_refused(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(InventoryError) as caught:
        load(tmp_path, text)
    assert part in caught.value.message


def test_what_is_said_twice_or_more_closely_is_no_contradiction(tmp_path: Path) -> None:
    inventory = load(
        tmp_path,
        "all = (['g1', 'g2'], {'python': '/of/all'})\n"
        "a = ([('g1', {'ssh_port': 23, 'python': '/own'})], {'python': '/of/a', 'ssh_user': 'x'})\n"
        "b = ([('g1', {'ssh_port': 23}), 'g2'], {'python': '/of/b', 'ssh_user': 'x'})\n",
    )
    assert inventory.node("g1").data["python"] == "/own"
    assert inventory.node("g2").data["python"] == "/of/b"
