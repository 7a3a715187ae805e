"""Values of the wrong kind in the data of hosts: refused in words, before a host is asked anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remedy.errors import InventoryError
from remedy.inventory import data
from remedy.inventory.hosts import Node
from remedy.transport.reader import load_inventory
from tests.alone import COOPERATIVE

pytestmark = COOPERATIVE
PATH = Path("inventory.py")
# pyinfra replaces sockets of the process that imports it.
KEYS = "from pyinfra.connectors.ssh import ConnectorData; print(*ConnectorData.__annotations__)"


def complaints(**values: object) -> list[str]:
    nodes = [Node(name, name, data=values) for name in ("gpu01", "gpu02")]
    return [error.message for error in data.wrong_values(PATH, nodes)]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("ssh_port", "22", "ssh_port is '22', needs a whole number from 1 to 65535"),
        ("ssh_port", True, "ssh_port is True, needs a whole number from 1 to 65535"),
        ("ssh_port", 65536, "ssh_port is 65536, needs a whole number from 1 to 65535"),
        ("ssh_user", 5, "ssh_user is 5, needs text"),
        ("ssh_user", None, "ssh_user is None, needs text"),
        ("ssh_hostname", ["a"], "ssh_hostname is ['a'], needs text"),
        ("ssh_allow_agent", "no", "ssh_allow_agent is 'no', needs True or False"),
        ("ssh_connect_retry_max_delay", "1", "is '1', needs a number of seconds"),
        ("_sudo", "yes", "_sudo is 'yes', needs True or False"),
        ("python", "python3", "python is 'python3', needs the absolute path of an interpreter"),
        ("python", "~/venv/bin/python", "needs the absolute path of an interpreter on the host"),
        ("python", "/a:b", "python is '/a:b', needs the absolute path"),
        ("python", 3, "python is 3, needs the absolute path"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_hosts(
    key: str, value: Any, words: str
) -> None:
    (line,) = complaints(**{key: value})
    assert line.startswith("inventory.py: gpu[01-02]: ")
    assert words in line


@pytest.mark.parametrize("key", ["ssh_password", "ssh_key_password", "_sudo_password"])
def test_a_secret_of_the_wrong_kind_is_not_shown(key: str) -> None:
    (line,) = complaints(**{key: 271828})
    assert line.endswith(f"{key} needs text; its value is not shown here")


def test_right_values_and_data_of_the_users_own_are_no_matter() -> None:
    right = {"ssh_port": 2222, "ssh_user": "root", "ssh_connect_retry_min_delay": 1, "_sudo": True}
    assert not complaints(**right, python=Path("/opt/bin/python"), _sudo_password=None, rack=5)
    assert not complaints(python=None, _sudo=None, ssh_paramiko_connect_kwargs={})


def test_every_key_of_the_connector_has_its_kind() -> None:
    done = subprocess.run([sys.executable, "-c", KEYS], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) - data._KINDS.keys()


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("root@gpu01", '("gpu01", {"ssh_user": "root"})'),
        ("gpu01:2222", '("gpu01", {"ssh_port": 2222})'),
        ("gpu[01-04]", "Ranges are written in Python"),
        ("[::1]:22", "Use letters, digits and hyphens"),
        ("a@b@c_d", "Use letters, digits and hyphens"),
        ("gpu01:ssh", "Use letters, digits and hyphens"),
        ("gpu_01", "Use letters, digits and hyphens"),
    ],
)
def test_what_other_programs_write_into_a_name_has_a_place_of_its_own(
    tmp_path: Path, name: str, step: str
) -> None:
    (path := tmp_path / "inventory.py").write_text(f"hosts = [{name!r}]\n")
    with pytest.raises(InventoryError) as refused:
        load_inventory(path)
    assert step in refused.value.next_step
