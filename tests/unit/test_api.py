"""The names that programs may use, and that the page about them has them all.

The module makes the sockets and threads of its whole process cooperative, so a process of its own uses it.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from tests.lab import forks

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = [
    "Consent",
    "Explanation",
    "HostOutcome",
    "HostStatus",
    "Plan",
    "Progress",
    "Proposal",
    "RefusedError",
    "RemedyError",
    "RunOutcome",
    "Session",
    "agree",
    "apply",
    "check",
    "diagnose",
    "document",
    "load",
    "plan",
    "verify",
]

LOAD = """
with api.load(
    "inventory.py", limit=["gpu01"], only=["limits"], settings={"verify": {"deadline": 60}}
) as session:
    assert session.hosts == ("gpu01",)
    assert session.choice.words
    assert session.spec.verify.deadline == 60
try:
    api.load("inventory.py", limit=["gpu09"])
except api.RemedyError as error:
    print(error.message)
"""
SETTINGS = """
for settings in ({"verify": {"deadline": 5}}, {"verfy": {}}, {"verify": {"deadlin": 60}}):
    try:
        print("loaded", api.load("inventory.py", settings=settings))
    except api.RemedyError as error:
        print(error.message)
"""
SELECTION = """
assert api.load("inventory.py").hosts == ("gpu01", "gpu02")
assert api.load("inventory.py", limit="gpu02").hosts == ("gpu02",)
assert api.load("inventory.py", limit="gpu[01-02]", skip="limits,hostname").choice.words
for nothing in ("", [], [""], iter(())):
    try:
        print("selected", api.load("inventory.py", limit=nothing).hosts)
    except api.RemedyError as error:
        print(error.message)
"""
GATEWAYS = """
with api.load("inventory.py") as session:
    outcome = api.check(session)
    assert api.document(outcome)["warnings"] == [*outcome.warnings]
    print(outcome.inventory, *outcome.warnings, sep="\\n")
"""
DIAGNOSE = """
explanation = api.diagnose(["train.log"])
print(explanation.diagnosis.label, explanation.command)
"""


TYPED = """
with api.load("inventory.py") as session:
    try:
        api.apply(session, plan="broken.json", consent=api.agree)
    except api.RemedyError as error:
        print(error.next_step)
"""


def run(folder: Path, text: str) -> str:
    program = [sys.executable, "-c", "from remedy import api\n" + text]
    done = forks.run(program, stdin="", seconds=120, environment=os.environ, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_names_are_these(tmp_path: Path) -> None:
    text = "print(*api.__all__); assert all(hasattr(api, name) for name in api.__all__)"
    assert run(tmp_path, text).split() == NAMES


def test_the_page_shows_each_function_and_uses_no_other_name() -> None:
    functions = {name for name in NAMES if name.islower()}
    rows = {line.partition("(")[0] for line in PAGE.split("\n| `")[1:]}
    assert functions <= rows
    example = PAGE.partition("```python\n")[2].partition("```")[0]
    used = {
        node.attr
        for node in ast.walk(ast.parse(example))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "api"
    }
    assert functions - {"document"} <= used <= set(NAMES)


INVENTORY = "hosts = [(f'gpu0{n}', {'ssh_hostname': f'127.0.0.{n}'}) for n in (1, 2)]\n"


def test_the_sessions_options_are_those_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text(INVENTORY)
    assert "gpu09" in run(tmp_path, LOAD)


def test_settings_that_cannot_be_are_an_error_that_names_no_command_line(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text('hosts = ["gpu01"]\n')
    assert run(tmp_path, SETTINGS).splitlines() == [
        "settings: verify.deadline is 5, needs a number from 10 to 3600, or null",
        "settings: there is no section 'verfy'; did you mean 'verify'?",
        "settings: there is no key 'verify.deadlin'; did you mean 'deadline'?",
    ]


def test_the_next_step_of_an_error_has_the_inventory_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text("hosts = ['gpu01']\n")
    (tmp_path / "broken.json").write_text("{}")
    step = run(tmp_path, TYPED).strip()
    assert step.endswith("Make a new one: remedy plan inventory.py -o broken.json")


def test_what_gateways_do_not_use_is_a_warning(tmp_path: Path) -> None:
    host = {"ssh_hostname": "127.0.0.1", "ssh_port": 9, "ssh_key": "/nowhere/key"}
    (tmp_path / "inventory.py").write_text(f"hosts = [('gpu01', {host!r})]\n")
    (tmp_path / "remedy.yaml").write_text("ssh: {gateways: {head.invalid: gpu01}}\n")
    inventory, warning, *_ = run(tmp_path, GATEWAYS).splitlines()
    assert inventory == str(tmp_path / "inventory.py")
    assert warning.startswith("gpu01: ssh_key of the inventory is not used: ")


def test_a_selection_that_came_out_empty_is_not_every_host(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text(INVENTORY)
    said = run(tmp_path, SELECTION).splitlines()
    assert len(said) == 4
    assert all("selects no host of inventory.py" in line for line in said), said


def test_logs_alone_are_diagnosed_without_a_host(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "RuntimeError: The server socket has failed to bind to [::]:29500 "
        "(errno: 98 - Address already in use).\n"
    )
    label, command = run(tmp_path, DIAGNOSE).split(maxsplit=1)
    assert label == "master-port-in-use"
    assert "INVENTORY" in command
