"""First files: an inventory of what a different program has, and a spec that loads as it is and uncommented."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from remedy.cli.init import KINDS
from remedy.cli.main import main
from remedy.inventory import elsewhere
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


def test_every_section_of_the_spec_says_what_it_is_about() -> None:
    models = section_models()
    lines = render_spec(models).splitlines()
    titles = {name: lines[lines.index(f"# {name}:") - 1].removeprefix("# ") for name in models}
    assert titles["hosts_file"].startswith("every host resolves every host of the cluster")
    assert titles["verify"] == "How the proof by all-reduce is made, and what it has to reach."
    assert not [name for name, title in titles.items() if len(title.split()) < 3]


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


def test_hosts_that_are_not_written_are_an_error(tmp_path: Path) -> None:
    arguments = ("--from", "hostfile", "-")
    assert "Next: remedy trust " in init(tmp_path, *arguments, text="gpu01\n").output
    (tmp_path / "site" / "remedy.yaml").unlink()
    again = init(tmp_path, *arguments, text="gpu02\n[x]\n")
    assert again.exit_code == 2, again.output
    assert "line 2: [x]: left out" in again.output
    output = " ".join(again.output.split())
    assert "inventory.py exists already, with other hosts; nothing was written" in output
    assert (
        "Write them into a new folder: remedy init --from hostfile - --directory FOLDER" in output
    )
    assert "Next: " not in again.output
    assert "gpu02" not in (tmp_path / "site" / "inventory.py").read_text()
    assert not (tmp_path / "site" / "remedy.yaml").exists()


def test_hosts_that_are_written_already_are_no_error(tmp_path: Path) -> None:
    arguments = ("--from", "hostfile", "-")
    init(tmp_path, *arguments, text="gpu01\n")
    again = init(tmp_path, *arguments, text="gpu01  # the same\n")
    assert again.exit_code == 0, again.output
    assert "inventory.py exists already and was left alone" in " ".join(again.output.split())
    assert "Next: remedy trust " in again.output


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


def test_what_was_left_out_is_named_before_what_cannot_be_an_inventory(tmp_path: Path) -> None:
    text = "NodeName=a[1-2] NodeAddr=10.0.0.1,10.0.0.1\nNodeNme=a3\n"
    result = init(tmp_path, "--from", "slurm", "-", text=text)
    assert result.exit_code == 2
    assert "line 2: NodeNme=a3: left out, no key of slurm.conf" in result.output


def test_a_kind_that_there_is_none_of_is_refused(tmp_path: Path) -> None:
    result = init(tmp_path, "--from", "terraform", "x")
    assert result.exit_code == 2
    assert "ansible, clustershell, hostfile, slurm" in result.output
    assert tuple(elsewhere.KINDS) == KINDS


@pytest.mark.parametrize(
    "words", [("--from",), ("--from", "slurm"), ("--from", "slurm", "--directory", "x")]
)
def test_from_without_a_path_names_what_it_takes(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, ["init", *words])
    assert result.exit_code == 2
    assert "'--from' needs KIND and PATH, such as --from hostfile hosts.txt" in result.output
    assert "Kinds: ansible, clustershell, hostfile, slurm." in result.output


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (("schema", "spce"), "spec"),
        (("completion", "bsh"), "bash"),
        (("history", "inventory.py", "--command", "aply"), "apply"),
        (("audit", "export", "inventory.py", "--format", "jsno"), "json"),
        (("verify", "inventory.py", "--engine", "troch"), "torch"),
    ],
)
def test_a_misspelt_word_is_refused_with_the_nearest(words: tuple[str, ...], nearest: str) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "is not one of " in result.output
    assert f"Did you mean '{nearest}'?" in result.output
