"""What is installed: bounded in pyproject.toml, exact in constraints.txt, audited where that can be done."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text()
RENEW = "scripts/constraints renew"
# Where the name of a distribution is not that of what it is imported by; pydantic pins its core.
IMPORTED_AS = {"yaml": "pyyaml", "pyinfra_cli": "pyinfra", "pydantic_core": "pydantic"}
# What the ranks of engines import on hosts: not of this environment.
ON_HOSTS = {"torch", "paddle", "mindspore", "numpy"}


def requirements() -> list[Requirement]:
    # tomllib came with Python 3.11; every requirement stands in double quotes, and holds an operator.
    tables = PROJECT[: PROJECT.index("[project.scripts]")]
    return [Requirement(text) for text in re.findall(r'"([A-Za-z][\w.-]*[<>=]=[^"]+)"', tables)]


def pins() -> dict[str, str]:
    """Return the version of each package that constraints.txt holds for this Python."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin in pinned
        if pin.marker is None or pin.marker.evaluate()
    }


def installed() -> Iterator[tuple[str, str]]:
    """Yield what this environment has of what the project needs, with all that this needs in turn."""
    waiting = [r for r in requirements() if r.marker is None or r.marker.evaluate()]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        key = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if key in seen:
            continue
        seen.add(key)
        try:
            distribution = metadata.distribution(wanted.name)
        except metadata.PackageNotFoundError:
            continue  # of another extra, such as the engines
        yield key[0], distribution.version.partition("+")[0]
        for text in distribution.requires or ():
            needed = Requirement(text)
            extras = ("", *wanted.extras)
            if needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)


@pytest.mark.parametrize("requirement", requirements(), ids=lambda r: str(r.name))
def test_every_requirement_has_an_upper_bound(requirement: Requirement) -> None:
    assert any(part.operator in ("<", "==", "~=") for part in requirement.specifier), requirement


def test_what_is_imported_is_asked_for() -> None:
    modules = {
        name.partition(".")[0]
        for path in [*ROOT.glob("remedy/**/*.py"), *ROOT.glob("deploys/**/*.py")]
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and node.level == 0
            else []
        )
    }
    foreign = modules - set(sys.stdlib_module_names) - ON_HOSTS - {"remedy", "__future__"}
    assert len(foreign) > 5
    dependencies = PROJECT[: PROJECT.index("[project.optional-dependencies]")]
    asked = {canonicalize_name(r.name) for r in requirements() if r.name in dependencies}
    names = {canonicalize_name(IMPORTED_AS.get(module, module)) for module in foreign}
    assert names <= asked


def test_constraints_hold_every_requirement_within_its_bounds() -> None:
    pinned = pins()
    for requirement in requirements():
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in constraints.txt: {RENEW}"
        assert requirement.specifier.contains(version), f"{requirement}, not {version}: {RENEW}"


def test_this_environment_has_the_versions_of_the_constraints() -> None:
    pinned, versions = pins(), dict(installed())
    assert len(versions) > len(requirements()) - 5
    # Torch's own requirements differ between its builds, which name them exactly.
    by_torch = ("cuda-", "nvidia-", "triton")
    differing = {
        name: f"{version}, not {pinned.get(name)}"
        for name, version in versions.items()
        if pinned.get(name) != version and not name.startswith(by_torch)
    }
    assert differing == {}, f"make the environment anew (scripts/setup.sh), or {RENEW}"


def pip_audit(folder: Path, script: str) -> tuple[int, str]:
    """Run the audit with a stand-in for pip-audit; return its exit code and what it printed."""
    path = folder / "bin" / "pip-audit"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n{script}\n")
    path.chmod(0o755)
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "constraints", "audit"],
        env={**os.environ, "REMEDY_SUPPLY_VENV": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


ANSWER = """
pins = [line.split("==") for line in pathlib.Path(sys.argv[-1]).read_text().split()]
known = [{"name": name, "version": version, "vulns": []} for name, version in pins]
"""


def test_an_audit_that_knows_of_nothing_is_good_news(tmp_path: Path) -> None:
    code, output = pip_audit(tmp_path, ANSWER + "print(json.dumps({'dependencies': known}))")
    assert code == 0, output
    versions = [
        line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    ]
    assert output == f"{len(versions)} versions, no advisory\n"


def test_an_advisory_is_named_and_fails(tmp_path: Path) -> None:
    found = {"id": "PYSEC-2026-1", "fix_versions": ["4.0.1"], "aliases": [], "description": ""}
    change = (
        "hit = [k for k in known if k['name'] == 'paramiko']\n"
        f"[k['vulns'].append(json.loads({json.dumps(json.dumps(found))})) for k in hit]\n"
        "print(json.dumps({'dependencies': known})); sys.exit(bool(hit))"
    )
    code, output = pip_audit(tmp_path, ANSWER + change)
    assert code == 1, output
    assert f"paramiko {pins()['paramiko']}: PYSEC-2026-1, mended in 4.0.1" in output


@pytest.mark.parametrize(
    "script",
    [
        # What it says of each package where the index serves none, with the exit code 0.
        (
            "none = [{'name': name, 'skip_reason': 'not found: x'} for name, _ in pins]\n"
            "print(json.dumps({'dependencies': none}))"
        ),
        # It answers for all but one, or cannot connect.
        "print(json.dumps({'dependencies': known[1:]}))",
        "sys.exit('ConnectionError: no route')",
    ],
    ids=["nothing-served", "one-left-out", "no-connection"],
)
def test_without_advisories_an_audit_is_no_good_news(tmp_path: Path, script: str) -> None:
    code, output = pip_audit(tmp_path, ANSWER + script)
    assert code == 3, output
    assert "NOT audited" in output
