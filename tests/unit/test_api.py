"""The names that programs may use, and that the page about them has them all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from remedy import api

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def test_the_names_are_these() -> None:
    names = (
        "Consent Explanation HostOutcome HostStatus Plan Progress Proposal RefusedError RemedyError RunOutcome "
        "Session agree apply check diagnose document load plan verify"
    )
    assert api.__all__ == names.split()
    assert all(hasattr(api, name) for name in api.__all__)


def test_the_page_shows_each_function_and_uses_no_other_name() -> None:
    functions = {name for name in api.__all__ if name.islower()}
    rows = {line.partition("(")[0] for line in PAGE.split("\n| `")[1:]}
    assert functions <= rows
    example = PAGE.partition("```python\n")[2].partition("```")[0]
    used = {
        node.attr
        for node in ast.walk(ast.parse(example))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "api"
    }
    assert functions - {"document"} <= used <= set(api.__all__)


def test_the_sessions_options_are_those_of_the_command(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.py"
    inventory.write_text(
        "hosts = [(f'gpu0{n}', {'ssh_hostname': f'127.0.0.{n}'}) for n in (1, 2)]\n"
    )
    with api.load(
        inventory, limit=["gpu01"], only=["limits"], settings={"verify": {"deadline": 60}}
    ) as session:
        assert session.hosts == ("gpu01",)
        assert session.choice.words
        assert session.spec.verify.deadline == 60
    with pytest.raises(api.RemedyError, match="gpu09"):
        api.load(inventory, limit=["gpu09"])


def test_logs_alone_are_diagnosed_without_a_host(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "RuntimeError: The server socket has failed to bind to [::]:29500 "
        "(errno: 98 - Address already in use).\n"
    )
    explanation = api.diagnose([log])
    assert explanation.diagnosis.label == "master-port-in-use"
    assert explanation.command
    assert "INVENTORY" in explanation.command
