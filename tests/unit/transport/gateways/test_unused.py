"""What an inventory says of hosts behind gateways, and no login uses, is named before they are asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from remedy.cli.main import main
from remedy.inventory import Inventory, Node
from remedy.transport.gateways.routes import read_routes
from remedy.transport.gateways.unused import unused


def notes(**data: Mapping[str, object]) -> tuple[str, ...]:
    nodes = [
        Node(name, f"10.0.0.{n}", data={"ssh_hostname": f"10.0.0.{n}", **more})
        for n, (name, more) in enumerate(data.items(), 1)
    ]
    inventory = Inventory(Path("/nowhere/inventory.py"), tuple(nodes))
    return unused(read_routes({"head": "gpu*"}, inventory))


def test_what_a_login_uses_is_not_named() -> None:
    used = {"ssh_user": "root", "ssh_port": 2222, "ssh_key": None, "python": "/opt/python"}
    door = {"ssh_key": "/root/key", "ssh_known_hosts_file": "/root/known", "ssh_config_file": "/c"}
    assert notes(gpu1=used, head=door, storage={"ssh_password": "x"}) == ()


def test_hosts_with_the_same_data_are_one_sentence() -> None:
    login = {"ssh_key": "/root/key", "ssh_password": "x", "ssh_known_hosts_file": "/k"}
    reason = "not used: the gateway logs in, with a key of its own"
    assert notes(gpu1=login, gpu2=login, gpu3={"ssh_key": "/root/key"}, gpu4={}) == (
        "gpu[1-2]: ssh_key, ssh_known_hosts_file and ssh_password of the inventory are " + reason,
        "gpu3: ssh_key of the inventory is " + reason,
    )


def test_a_password_is_not_typed_at_a_gateway() -> None:
    assert notes(gpu1={}, head={"ssh_password": "x", "ssh_key": "/root/key"}) == (
        "head: ssh_password of the inventory is not used: ssh logs in to a gateway, with a key or an agent",
    )


def test_a_command_prints_the_note_once_before_its_hosts(tmp_path: Path) -> None:
    data = {"ssh_hostname": "192.0.2.1", "ssh_key": "/nowhere/key"}
    (tmp_path / "inventory.py").write_text(f"hosts = [('gpu1', {data!r})]\n")
    (tmp_path / "remedy.yaml").write_text("ssh: {gateways: {'-x': gpu1}}\n")
    call = ["trust", str(tmp_path / "inventory.py"), "--limit", "nobody"]
    result = CliRunner().invoke(main, call)
    assert (result.exit_code, "note " in result.stderr) == (2, False)
    (tmp_path / "remedy.yaml").write_text("ssh: {gateways: {head.invalid: gpu1}}\n")
    call = ["unlock", "latest", str(tmp_path / "inventory.py"), "--json"]
    result = CliRunner().invoke(main, call)
    assert json.loads(result.stdout)["exit_code"] == 2
    assert result.stderr.count("note        gpu1: ssh_key of the inventory is not used: ") == 1


def test_the_document_of_a_run_has_the_note_among_its_warnings(tmp_path: Path) -> None:
    # The gateway is a port at which nobody listens.
    door = {"ssh_hostname": "127.0.0.1", "ssh_port": 9, "ssh_password": "x"}
    host = {"ssh_hostname": "192.0.2.1", "ssh_key": "/nowhere/key"}
    (tmp_path / "inventory.py").write_text(f"hosts = [('head', {door!r}), ('gpu1', {host!r})]\n")
    (tmp_path / "remedy.yaml").write_text("ssh: {gateways: {head: gpu1}}\n")
    for quiet in ([], ["-q"]):
        result = CliRunner().invoke(
            main, ["check", str(tmp_path / "inventory.py"), "--json", *quiet]
        )
        document = json.loads(result.stdout)
        assert document["schema"] == "remedy.run/1", document
        of_host, of_gateway, *_ = document["warnings"]
        assert of_host.startswith("gpu1: ssh_key of the inventory is not used: ")
        assert of_gateway.startswith("head: ssh_password of the inventory is not used: ")
        assert result.stderr.count("ssh_key of the inventory") == (0 if quiet else 1)
