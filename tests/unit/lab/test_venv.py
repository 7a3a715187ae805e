"""Which folders of this machine make an interpreter run inside a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import LabError
from remedy.lab import venv
from remedy.lab.venv import Environment


def _answer(prefix: str, base: str) -> dict[str, str]:
    return {"torch": "yes", "prefix": prefix, "base": base, "version": "3.12"}


def test_an_environment_and_its_interpreter_are_bound(tmp_path: Path) -> None:
    found = venv.plan(Path("/v/bin/python"), _answer("/v", "/opt/python"), tmp_path)
    assert found == Environment("/v/bin/python", ("/opt/python", "/v"))


def test_a_link_to_the_interpreter_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "python-3.12.1", tmp_path / "python"
    real.mkdir()
    link.symlink_to(real)
    found = venv.plan(Path("/v/bin/python"), _answer("/v", str(link)), tmp_path)
    assert found is not None
    assert found.binds == (str(link), str(real), "/v")


def test_an_interpreter_that_is_reached_by_another_way_is_named_by_its_environment(
    tmp_path: Path,
) -> None:
    found = venv.plan(Path("/usr/local/bin/py"), _answer("/v", "/opt/python"), tmp_path)
    assert found is not None
    assert found.python == "/v/bin/python3"


def test_the_systems_own_interpreter_is_the_hosts_own(tmp_path: Path) -> None:
    assert venv.plan(Path("/v/bin/python"), _answer("/v", "/usr"), tmp_path) is None
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/python3.12").touch()
    found = venv.plan(Path("/v/bin/python"), _answer("/v", "/usr"), tmp_path)
    assert found == Environment("/v/bin/python", ("/v",))
    # torch in the system's own packages is not in the hosts'.
    assert venv.plan(Path("/usr/bin/python3"), _answer("/usr", "/usr"), tmp_path) is None


def test_a_named_environment_without_torch_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(venv.VARIABLE, str(tmp_path))
    with pytest.raises(LabError, match="no Python with torch"):
        venv.find(tmp_path)
