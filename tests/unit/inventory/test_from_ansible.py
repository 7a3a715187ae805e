"""Hosts of Ansible: what ansible-inventory prints, by the program itself where it is installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from remedy.errors import UsageError
from remedy.inventory.elsewhere import Listing, ansible, read_hosts
from tests.unit.inventory.elsewhere import data_of, listing_of, loaded, names_of, noted, type_in

INI = """
[gpus]
gpu01 ansible_host=10.0.0.1 ansible_port=2222
gpu[02:03] ansible_user=ops ansible_become=true ansible_become_user=adm  # a range
gpu_04 ansible_host=10.0.0.4
win1 ansible_connection=winrm
-oProxyCommand=reboot
[rack-1]
gpu01
[gpus:vars]
ansible_ssh_private_key_file=~/.ssh/id_x
ansible_password=geheim
"""
BECOMING = {"ansible_become": "true", "ansible_user": "ops", "ansible_become_user": "adm"}
# What ansible-core 2.19 printed of the text above; the program itself reads it below.
PRINTED = {
    "_meta": {
        "hostvars": {
            "gpu01": {"ansible_host": "10.0.0.1", "ansible_port": 2222},
            "gpu02": BECOMING,
            "gpu03": BECOMING,
            "gpu_04": {"ansible_host": "10.0.0.4"},
            "win1": {"ansible_connection": "winrm"},
            "-oProxyCommand=reboot": {},
        },
        "profile": "inventory_legacy",
    },
    "all": {"children": ["ungrouped", "gpus", "rack-1"]},
    "gpus": {"hosts": ["gpu01", "gpu02", "gpu03", "gpu_04", "win1", "-oProxyCommand=reboot"]},
    "rack-1": {"hosts": ["gpu01"]},
}
for _host in PRINTED["_meta"]["hostvars"].values():  # type: ignore[index]
    _host |= {"ansible_ssh_private_key_file": "~/.ssh/id_x", "ansible_password": "geheim"}

installed = pytest.mark.skipif(
    shutil.which("ansible-inventory") is None, reason="ansible-core is not installed"
)


def judge(tmp_path: Path, listing: Listing) -> None:
    """Assert what the inventory above means."""
    assert names_of(listing) == "gpu[01-03]"
    assert data_of(listing)["gpu01"] == {
        "ssh_hostname": "10.0.0.1", "ssh_port": 2222, "ssh_key": "~/.ssh/id_x"
    }  # fmt: skip
    assert data_of(listing)["gpu03"] == {
        "ssh_user": "ops", "ssh_key": "~/.ssh/id_x", "_sudo": True
    }  # fmt: skip
    assert listing.groups == {"gpus": ("gpu01", "gpu02", "gpu03"), "rack_1": ("gpu01",)}
    assert loaded(tmp_path, listing)["gpu01"] == "10.0.0.1"
    notes = noted(listing)
    assert "gpu_04, -oProxyCommand=reboot: left out, no host name" in notes
    assert "win1: left out, ansible_connection=winrm" in notes
    assert "ansible_password is not copied" in notes
    assert "gpu[02-03]: ansible_become_user=adm, and remedy becomes root" in notes
    assert "geheim" not in notes + repr(listing.hosts)


def test_what_ansible_printed_elsewhere_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(tmp_path, listing_of(tmp_path, "ansible", json.dumps(PRINTED), "hosts.json"))
    type_in(monkeypatch, json.dumps(PRINTED))
    judge(tmp_path, read_hosts("ansible", "-"))


@installed
def test_ansible_reads_its_inventories_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(tmp_path, listing_of(tmp_path, "ansible", INI))
    type_in(monkeypatch, INI)
    judge(tmp_path, read_hosts("ansible", "-"))
    assert names_of(read_hosts("ansible", "gpu1,gpu2,")) == "gpu[1-2]"


@installed
def test_folders_group_vars_and_yaml_count(tmp_path: Path) -> None:
    (tmp_path / "site" / "group_vars").mkdir(parents=True)
    (tmp_path / "site" / "hosts.yml").write_text(
        "all:\n  children:\n    gpus:\n      hosts:\n        gpu[01:03]: {}\n"
        "      children:\n        big:\n          hosts: {big1: {ansible_host: '{{ x }}'}}\n"
    )
    (tmp_path / "site" / "group_vars" / "gpus.yml").write_text("ansible_user: ops\n")
    listing = read_hosts("ansible", str(tmp_path / "site"))
    assert names_of(listing) == "big1,gpu[01-03]"
    assert {str(data["ssh_user"]) for data in data_of(listing).values()} == {"ops"}
    assert listing.groups["gpus"] == ("gpu01", "gpu02", "gpu03", "big1")
    assert "big1 (ansible_host): a template" in noted(listing)


@installed
@pytest.mark.parametrize("text", ["[gpus\ngpu01\n", "all: [\n"])
def test_what_ansible_cannot_read_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="ansible-inventory cannot read it"):
        listing_of(tmp_path, "ansible", text)


def test_where_ansible_is_missing_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="ansible-inventory is not installed here") as caught:
        listing_of(tmp_path, "ansible", INI)
    assert "pipx install ansible-core" in caught.value.next_step
    assert "ansible-inventory -i FILE --list" in caught.value.next_step


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Have a program of that name do something else."""
    path = tmp_path / "ansible-inventory"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_program_that_asks_or_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ansible, "SECONDS", 1)
    program(tmp_path, monkeypatch, "cat; exec sleep 20")
    with pytest.raises(UsageError, match="took more than 1 seconds"):
        listing_of(tmp_path, "ansible", INI)


@pytest.mark.parametrize(
    "printed",
    ["", "[]", "{}", '{"_meta": 1}', '{"_meta": {"hostvars": []}}', "[" * 100_000, '{"a":' * 5000],
)
def test_what_is_no_list_of_hosts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str
) -> None:
    (tmp_path / "out").write_text(printed)
    program(tmp_path, monkeypatch, f"cat {tmp_path}/out")
    with pytest.raises(UsageError):
        listing_of(tmp_path, "ansible", INI)


def test_groups_in_a_circle_and_values_of_any_kind_are_read(tmp_path: Path) -> None:
    document = {
        "_meta": {"hostvars": {"a1": {"ansible_port": [1], "ansible_host": {"x": 1}, "ansible_user": "-x"},
                               "b1": None, "\x1b[31m": {}}},
        "all": {"children": ["x"]}, "x": {"children": ["y", "x"], "hosts": ["a1"]},
        "y": {"children": ["x"], "hosts": ["b1", "\x1b[31m"]}, "z": 7,
    }  # fmt: skip
    listing = listing_of(tmp_path, "ansible", json.dumps(document), "hosts.json")
    assert data_of(listing) == {"a1": {}, "b1": {}}
    assert listing.groups == {"x": ("a1", "b1"), "y": ("b1", "a1")}
    assert noted(listing).replace("\n", "").isprintable()
