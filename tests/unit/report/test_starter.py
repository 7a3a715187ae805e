"""First files: an inventory of what a different program has, and a spec that loads as it is and uncommented."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from remedy.cli.main import main
from remedy.plan import section_models
from remedy.report.starter import render_spec
from remedy.spec import load_spec


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


def init(tmp_path: Path, *arguments: str, text: str = "") -> Result:
    command = ["init", "--directory", str(tmp_path / "site"), *arguments]
    return CliRunner().invoke(main, command, input=text)


def test_init_takes_hosts_from_standard_input_and_names_what_it_left_out(tmp_path: Path) -> None:
    result = init(tmp_path, "--from", "hostfile", "-", text="ops@gpu[01-02] slots=8\n[gpus]\n")
    assert result.exit_code == 0, result.output
    assert "2 hosts: gpu[01-02]" in result.output
    assert "line 2: [gpus]: left out, a section" in result.output
    assert "('gpu02', {'ssh_user': 'ops'})" in (tmp_path / "site" / "inventory.py").read_text()


def test_hosts_that_were_not_written_are_not_called_the_next_step(tmp_path: Path) -> None:
    arguments = ("--from", "hostfile", "-")
    assert "Next: remedy trust " in init(tmp_path, *arguments, text="gpu01\n").output
    again = init(tmp_path, *arguments, text="gpu02\n")
    assert again.exit_code == 0, again.output
    assert "These hosts were not written. Write them into a new folder: " in again.output
    assert "remedy init --from hostfile - --directory FOLDER" in again.output
    assert "Next: " not in again.output
    assert "gpu02" not in (tmp_path / "site" / "inventory.py").read_text()


def test_a_first_inventory_is_to_be_edited(tmp_path: Path) -> None:
    first, second = init(tmp_path).output, init(tmp_path).output
    assert "Next: put your hosts into " in first
    assert "Next: remedy trust " in second


def test_what_cannot_be_an_inventory_is_not_written(tmp_path: Path) -> None:
    text = "NodeName=a1 NodeAddr=10.0.0.1\nNodeName=a2 NodeAddr=10.0.0.1\n"
    result = init(tmp_path, "--from", "slurm", "-", text=text)
    assert result.exit_code == 2
    assert "a1 and a2 have the same ssh address" in result.output
    assert not (tmp_path / "site").exists()


def test_a_kind_that_there_is_none_of_is_refused(tmp_path: Path) -> None:
    result = init(tmp_path, "--from", "terraform", "x")
    assert result.exit_code == 2
    assert "ansible, clustershell, hostfile, slurm" in result.output
