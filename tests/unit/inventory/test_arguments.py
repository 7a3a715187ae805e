"""Arguments of pyinfra in an inventory: each is used, or refused with the host, the key and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyinfra.api.arguments import all_argument_meta

from remedy.errors import InventoryError
from remedy.inventory import Inventory
from remedy.inventory.arguments import USED
from remedy.transport.reader import load_inventory


def load(folder: Path, data: dict[str, object], of_group: str = "{}") -> Inventory:
    path = folder / "inventory.py"
    hosts = f"[('gpu01', {data!r}), ('gpu02', {data!r}), 'gpu03']"
    path.write_text(f"hosts = ({hosts}, {of_group})\n")
    return load_inventory(path)


@pytest.mark.parametrize(
    ("data", "words", "step"),
    [
        (
            {"_su_user": "root"},
            "_su_user ('root') is not used: remedy becomes root by sudo",
            "_sudo",
        ),
        ({"_su_password": "geheim"}, "_su_password (a secret)", "Connect as root (ssh_user)"),
        ({"_use_su_login": True}, "by sudo, not by su", "ssh_user"),
        ({"_preserve_su_env": True}, "by sudo, not by su", "ssh_user"),
        ({"_doas": True}, "by sudo, not by doas", "ssh_user"),
        ({"_doas_user": "ops"}, "by sudo, not by doas", "ssh_user"),
        ({"_dzdo": True}, "by sudo, not by dzdo", "ssh_user"),
        ({"_sudo_user": "ops"}, "_sudo_user ('ops')", "Leave it out"),
        ({"_use_sudo_login": True}, "by plain sudo", "no login shell"),
        ({"_preserve_sudo_env": True}, "by plain sudo", "environment"),
        ({"_shell_executable": "bash"}, "run by sh", "Leave it out"),
        ({"_timeout": 30}, "a deadline for each stage", "remedy explain ssh"),
        ({"ssh_paramiko_connect_kwargs": {"timeout": 3}}, "a deadline for each", "remedy explain"),
        ({"_get_pty": True}, "no terminal", "requiretty"),
        ({"_env": {"A": "b"}}, "for pyinfra's operations", "your own deploys"),
        ({"_retries": 3}, "for pyinfra's operations", "your own deploys"),
        ({"ssh_config_file": "/no/ssh_config"}, "it is no file that can be read", "~/.ssh/config"),
        (
            {"ssh_config_file": "/etc"},
            "ssh_config_file ('/etc') is not used",
            "the path of an ssh_config",
        ),
        ({"_sudo": False, "ssh_user": "ops"}, "_sudo (False) is not used", "leave it out"),
    ],
)
def test_what_would_not_be_used_is_refused(
    tmp_path: Path, data: dict[str, object], words: str, step: str
) -> None:
    with pytest.raises(InventoryError) as caught:
        load(tmp_path, data)
    assert f"{tmp_path / 'inventory.py'}: gpu[01-02]: " in caught.value.message
    assert words in caught.value.message
    assert step in caught.value.next_step
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("key", sorted(set(all_argument_meta) - {*USED, "name"}))
def test_no_argument_of_pyinfra_is_passed_over(tmp_path: Path, key: str) -> None:
    with pytest.raises(InventoryError, match=f"gpu03: {key} "):
        load(tmp_path, {key: 0}, f"{{{key!r}: 'something'}}")


@pytest.mark.parametrize(
    "data",
    [
        {"_sudo": True, "_sudo_password": "x"},
        {"_sudo": False, "ssh_user": "root"},
        {"_sudo_user": "root"},
        {"_success_exit_codes": [0]},
        {"_su_user": None, "_doas": False, "_timeout": 0, "_env": {}},
        {"ssh_paramiko_connect_kwargs": {"banner_timeout": 30}},
        {"ssh_config_file": "/dev/null"},
        {"ssh_config_file": ""},
    ],
)
def test_what_is_used_or_asks_for_nothing_is_left_alone(
    tmp_path: Path, data: dict[str, object]
) -> None:
    assert load(tmp_path, data).names == ("gpu01", "gpu02", "gpu03")
