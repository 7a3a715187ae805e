"""First files: hosts from what other tools use, and a spec that loads as it is and uncommented."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.cli.main import main
from remedy.errors import UsageError
from remedy.plan import section_models
from remedy.report.starter import read_hosts, render_inventory, render_spec
from remedy.spec import load_spec
from remedy.transport.reader import load_inventory

HOSTFILE = "# mpi\ngpu01 slots=8\ngpu02:8\n\n10.0.0.3 slots=8\n"
ANSIBLE = """
[gpus]
gpu01 ansible_host=10.0.0.1 ansible_port=2222
gpu[02:03] ansible_user=ops   # a range
[gpus:vars]
x=1
"""
SLURM = "ClusterName=c\nNodeName=DEFAULT CPUs=8\nNodeName=gpu[01-03] CPUs=8 # ours\nPartitionName=p Nodes=ALL\n"


@pytest.mark.parametrize(
    ("kind", "text", "names"),
    [
        ("hostfile", HOSTFILE, ("gpu01", "gpu02", "node-10-0-0-3")),
        ("ansible", ANSIBLE, ("gpu01", "gpu02", "gpu03")),
        ("slurm", SLURM, ("gpu01", "gpu02", "gpu03")),
    ],
)
def test_hosts_of_other_tools_become_an_inventory(
    tmp_path: Path, kind: str, text: str, names: tuple[str, ...]
) -> None:
    (tmp_path / "theirs").write_text(text)
    hosts = read_hosts(kind, tmp_path / "theirs")
    (tmp_path / "inventory.py").write_text(render_inventory(hosts))
    inventory = load_inventory(tmp_path / "inventory.py")
    assert inventory.names == names


def test_connection_data_comes_along(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text(ANSIBLE)
    first = read_hosts("ansible", tmp_path / "theirs")[0]
    assert first.data == {"ssh_hostname": "10.0.0.1", "ssh_port": 2222}


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_a_file_without_hosts_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "theirs").write_text(text)
    with pytest.raises(UsageError, match="no host in it"):
        read_hosts("slurm", tmp_path / "theirs")


def test_the_commented_spec_loads_and_says_what_holds_anyway(tmp_path: Path) -> None:
    models = section_models()
    path = tmp_path / "remedy.yaml"
    path.write_text(render_spec(models))
    commented = load_spec(path, models)
    settings = [
        line[2:]
        for line in path.read_text().splitlines()
        if line.startswith("# ") and (line[2:].startswith("  ") or line.rstrip().endswith(":"))
    ]
    path.write_text("\n".join(settings))
    assert load_spec(path, models).digest == commented.digest == load_spec(None, models).digest


def test_init_leaves_files_that_are_there_alone(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text("hosts = ['mine']\n")
    result = CliRunner().invoke(main, ["init", "--directory", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "left alone" in result.output
    assert (tmp_path / "inventory.py").read_text() == "hosts = ['mine']\n"
    assert (tmp_path / "remedy.yaml").exists()
