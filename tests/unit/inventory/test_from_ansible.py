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


# What other commands print, and what is wrong with it.
MISTAKES = [
    ('{"ansible_host": "10.0.0.1"}', "no groups (keys: ansible_host), as what --host prints", "--list: "),
    ('{"gpus": {"hosts": ["a1"]}}', "as what an inventory script prints (keys: gpus)", "-i SCRIPT --list"),
    ('{"all": {"hosts": {"a1": {}}}}', "is an inventory itself (keys: all)", "Where Ansible is: "),
    ('{"_meta": {}, "all": {}}', "its _meta has no object hostvars", "again: ansible-inventory"),
    ('{"all": {"hosts": ["a1"', "no JSON from line 1, column ", "standard output alone"),
    ("[WARNING]: old\n{}", "no JSON from line 1, column 2: [WARNING]: old", "standard output alone"),
    ('["a1"]', "its JSON is no object with groups", "--list"),
    ("", "it is empty", "again"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "step"), MISTAKES, ids=range(len(MISTAKES)))
@pytest.mark.parametrize("ansible", ["missing", "finds nothing", "fails"])
def test_json_that_is_no_list_is_said_to_be_what_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ansible: str,
    text: str,
    reason: str,
    step: str,
) -> None:
    if ansible == "missing":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif ansible == "finds nothing":
        program(tmp_path, monkeypatch, """echo '{"_meta": {"hostvars": {}}}'""")
    else:
        program(tmp_path, monkeypatch, "echo ERROR its own >&2; exit 1")
    with pytest.raises(UsageError) as caught:
        listing_of(tmp_path, "ansible", text, "hosts.json")
    if ansible == "fails" and "is an inventory itself" in reason:
        assert "ansible-inventory cannot read it: ERROR its own" in caught.value.message
    else:
        assert "hosts.json: not what ansible-inventory --list prints: " in caught.value.message
        assert reason in caught.value.message
        assert step in caught.value.next_step


def test_a_list_is_known_by_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    judge(tmp_path, listing_of(tmp_path, "ansible", json.dumps(PRINTED), "hosts"))


def test_variables_of_groups_are_not_lost(tmp_path: Path) -> None:
    document = {
        "_meta": {"hostvars": {"a1": {}}},
        "gpus": {"hosts": ["a1"], "vars": {"ansible_user": "ops", "rack": 1}},
    }
    with pytest.raises(UsageError, match="ansible_user of the group gpus is not among") as caught:
        listing_of(tmp_path, "ansible", json.dumps(document), "hosts.json")
    assert "without --export" in caught.value.next_step


def test_hosts_of_a_script_need_no_group_of_all(tmp_path: Path) -> None:
    document = {
        "_meta": {"hostvars": {"a1": {"ansible_host": {"__ansible_unsafe": "10.0.0.1"}}, "lost": {},
                               "a2": {"ansible_user": {"__ansible_vault": "x"}, "ansible_port": [22]}}},
        "gpus": {"hosts": ["a1"], "children": ["none"]}, "list": ["a2", "224.0.0.1", "10.0.0.300"],
        "here": {"hosts": ["localhost"]},
    }  # fmt: skip
    listing = listing_of(tmp_path, "ansible", json.dumps(document), "hosts.json")
    assert data_of(listing) == {"a1": {"ssh_hostname": "10.0.0.1"}, "a2": {}}
    assert listing.groups == {"gpus": ("a1",), "list": ("a2",)}
    notes = noted(listing)
    assert "lost: left out, in no group" in notes
    assert "here,none: left out, a group without hosts" in notes
    assert "224.0.0.1: left out, the address of no machine" in notes
    assert "10.0.0.300: left out, looks like an address, and is none" in notes
    assert "a2 (ansible_user): encrypted by a vault" in notes
    assert "a2 (ansible_port): no plain value" in notes


def test_of_two_names_of_a_variable_the_one_counts_that_ansible_takes(tmp_path: Path) -> None:
    variables = {"ansible_host": "10.0.0.1", "ansible_ssh_host": "[fe80::9%ib0]"}
    document = {"_meta": {"hostvars": {"a1": variables, "b1": [1]}}, "all": {"hosts": ["a1", "b1"]}}
    listing = listing_of(tmp_path, "ansible", json.dumps(document), "hosts.json")
    assert data_of(listing) == {"a1": {"ssh_hostname": "fe80::9%ib0"}, "b1": {}}
    assert "a1 (ansible_host): not used, as ansible_ssh_host counts before it" in noted(listing)


def test_misspelt_variables_are_named_and_facts_are_not(tmp_path: Path) -> None:
    variables = {"ansible_hst": "10.0.0.1", "ansible_usr": "ops", "ansilbe_port": 22}
    others = ["hostname", "user_id", "user_dir", "python_interpreter", "network_os", "become_exe"]
    document = {
        "_meta": {"hostvars": {"a1": variables | {f"ansible_{name}": "x" for name in others}}},
        "all": {"hosts": ["a1"]},
    }
    listing = listing_of(tmp_path, "ansible", json.dumps(document), "hosts.json")
    assert [note.partition(":")[0] for note in listing.notes] == [
        "a1 (ansible_hst)", "a1 (ansible_usr)", "a1 (ansilbe_port)"
    ]  # fmt: skip
    assert "passes over; did you mean 'ansible_host'?" in noted(listing)


def test_what_ansible_warns_of_is_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_text(json.dumps(PRINTED))
    (tmp_path / "err").write_text(
        "[WARNING]: Skipping unexpected key (host) in\n    group (gpus)\n[DEPRECATION WARNING]: old\n"
        "[WARNING]: Invalid characters were found in group names but not replaced\n"
    )
    program(tmp_path, monkeypatch, f"cat {tmp_path}/err >&2; cat {tmp_path}/out")
    notes = noted(listing_of(tmp_path, "ansible", INI))
    assert "ansible-inventory: Skipping unexpected key (host) in group (gpus)" in notes
    assert "DEPRECATION" not in notes
    assert "Invalid characters" not in notes


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
