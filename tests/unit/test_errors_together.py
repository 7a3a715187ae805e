"""Errors that are raised together: all of them up to a bound, each with its next step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.cli.main import main
from remedy.errors import MOST_TOGETHER, InventoryError, SpecError, UsageError, raise_together
from remedy.inventory import check_file
from remedy.lab.faults import check_names
from remedy.plan.choice import choose
from remedy.report.facts import check_groups
from remedy.spec import SECTIONS, load_spec
from remedy.transport.reader import load_inventory

WRONG = """hosts = [
    ("gpu01", {"ssh_hostnme": "10.0.0.1", "ssh_port": "ssh"}),
    ("gpu_2", {"cluster_address": "rack2", "_timeout": 4}),
    ("gpu03", {"ssh_hostname": "gpu_2"}),
]
"""


def messages(call: Callable[[], object]) -> list[str]:
    with pytest.raises(UsageError) as caught:
        call()
    assert caught.value.message.split("\n") == [part.message for part in caught.value.parts]
    return [part.message for part in caught.value.parts]


def test_nothing_and_a_single_error_are_what_they_are() -> None:
    raise_together([])
    single = SpecError("wrong", next_step="Correct it.")
    with pytest.raises(SpecError) as caught:
        raise_together([single, SpecError("wrong", next_step="Correct it.")])
    assert caught.value is single
    assert caught.value.parts == ()


def test_errors_with_the_same_next_step_stand_together() -> None:
    errors = [InventoryError(text, next_step=step) for text, step in ("aX", "bY", "cX")]
    with pytest.raises(InventoryError) as caught:
        raise_together(errors)
    assert [part.message for part in caught.value.parts] == ["a", "c", "b"]
    assert (caught.value.message, caught.value.next_step) == ("a\nc\nb", "X\nY")


def test_they_are_bounded_and_the_rest_is_counted() -> None:
    count = MOST_TOGETHER + 7
    lines = messages(
        lambda: raise_together(UsageError(f"n{n}", next_step="Correct it.") for n in range(count))
    )
    assert lines[:MOST_TOGETHER] == [f"n{n}" for n in range(MOST_TOGETHER)]
    assert lines[MOST_TOGETHER:] == ["7 more errors are not shown"]
    words = [str(n) for n in range(MOST_TOGETHER + 1)]
    lines = messages(
        lambda: raise_together(UsageError(word, next_step="Correct it.") for word in words)
    )
    assert lines[MOST_TOGETHER:] == ["1 more error is not shown"]


def test_all_that_is_wrong_with_an_inventory_is_shown(tmp_path: Path) -> None:
    (path := tmp_path / "inventory.py").write_text(WRONG)
    lines = messages(lambda: load_inventory(path))
    assert all(line.startswith(f"{path}: ") for line in lines)
    assert sorted(line.removeprefix(f"{path}: ")[:40] for line in lines) == sorted(
        text[:40]
        for text in (
            "gpu01: ssh_port is 'ssh', needs a whole number",
            "'gpu_2' is not a legal host name",
            "cluster_address 'rack2' of gpu_2 is not an IP address",
            "gpu_2 and gpu03 have the same ssh address, gpu_2:22",
            "gpu01: there is no key 'ssh_hostnme' of a host",
            "gpu_2: _timeout (4) is not used: remedy has",
        )
    )


def test_all_doubles_of_an_inventory_are_shown(tmp_path: Path) -> None:
    (path := tmp_path / "inventory.py").write_text(
        'a = [("gpu01", {"x": 1, "x": 2})]\nb = [("gpu02", {"y": 1, "y": 2})]\n'
    )
    assert [line.partition(", ")[2][:13] for line in messages(lambda: check_file(path))] == [
        "line 1: 'x' h",
        "line 2: 'y' h",
    ]
    path.write_text('a = ["gpu01", "gpu01", {}, 3]\n')
    assert len(messages(lambda: check_file(path))) == 3
    path.write_text('a = [("g", {"x": 1, "y": 1})]\nb = [("g", {"x": 2, "y": 2})]\n')
    assert len(messages(lambda: check_file(path))) == 2


def test_all_that_is_wrong_with_the_settings_is_shown(tmp_path: Path) -> None:
    (path := tmp_path / "remedy.yaml").write_text(
        "clustr: {}\nverify: {port: 99999, deadlne: 3}\ncluster: {mtu: 9000}\n"
    )
    assert messages(lambda: load_spec(path, SECTIONS)) == [
        f"{path}: there is no section 'clustr'; did you mean 'cluster'?",
        f"{path}: there is no key 'cluster.mtu'",
        f"{path}: there is no key 'verify.deadlne'; did you mean 'deadline'?",
        f"{path}: verify.port is 99999, needs a whole number from 1 to 65535, or null",
    ]


def test_all_wrong_words_of_a_command_line_are_shown(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text('hosts = ["gpu01", "gpu02"]\n')
    loaded = load_inventory(tmp_path / "inventory.py")
    limits = messages(lambda: loaded.select(["gpu08,gpu09", "gpu02!xx"]))
    assert [line.split(":")[0] for line in limits] == [
        "--limit gpu08",
        "--limit gpu09",
        "--limit xx",
    ]
    assert len(messages(lambda: choose(["a,b"], ["c"], ["hostname"]))) == 3
    assert len(messages(lambda: check_groups(["a", "files", "b"]))) == 2
    assert len(messages(lambda: check_names(["a", "hosts-crlf", "b"]))) == 2


def test_a_command_shows_each_with_its_next_step_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inventory.py").write_text('hosts = ["gpu01"]\n')
    words = ["apply", "inventory.py", "--waves", "0", "--min-busbw", "x", "--json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    first, second = document["error"].split("\n")
    above, below = document["next_step"].split("\n")
    assert result.stderr == f"error: {first}\n  {above}\nerror: {second}\n  {below}\n"
    assert first.startswith('--waves is "0", needs numbers or percentages above 0')
    assert second.startswith('--min-busbw is "x", needs GB/s above 0, such as 40, or a share')
