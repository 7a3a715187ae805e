"""The files of firewalld's step, written into a folder that plays /etc/firewalld; its client is a stub."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from remedy.apply import script
from remedy.firewall import firewalld
from tests.unit.host_bench import SHELLS, Bench, shell_of, statuses

OURS = ("set\n", "policy\n", "")
# Refuses a reload for as long as a file called "refuse" is there, once.
CLIENT = """#!/bin/sh
case $* in
*--state*) echo running ;;
*--reload*) if [ -e {folder}/refuse ]; then rm {folder}/refuse; echo 'no such port'; exit 1; fi ;;
*--get-ipset-types*) echo hash:net ;;
esac
"""


class Site:
    """A host: its folder of firewalld, and what the step makes of it."""

    def __init__(self, folder: Path, shell: tuple[str, ...]) -> None:
        self.folder, self.etc = folder, folder / "firewalld"
        self.bench = Bench(folder, shell)
        (folder / "firewall-cmd").write_text(CLIENT.format(folder=folder))
        (folder / "firewall-cmd").chmod(0o755)
        self.bench.prelude = f"PATH={shlex.quote(str(folder))}:$PATH\n"
        self.files = [Path(self._here(path)) for path in firewalld.FILES]
        for file in self.files:
            file.parent.mkdir(parents=True, exist_ok=True)
        observe = f"cat {self.files[0]} 2>/dev/null || echo none"
        do = self._here(firewalld._do(*OURS))
        self.bench.command(observe, "none", "set", do, self._here(firewalld._do("", "", "")))

    def _here(self, text: str) -> str:
        return text.replace("/etc/firewalld", str(self.etc))

    def contents(self) -> dict[str, str]:
        return {file.name: file.read_text() for file in self.etc.rglob("*") if file.is_file()}


@pytest.fixture(params=SHELLS)
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(script, "ROOT", str(tmp_path / "state"))
    monkeypatch.setattr(script, "LOG", str(tmp_path / "log"))
    return Site(tmp_path, shell_of(request.param))


def test_files_come_and_go(site: Site) -> None:
    assert statuses(site.bench.apply()) == ["done"]
    assert site.contents() == {"remedy-peers.xml": "set\n", "remedy.xml": "policy\n"}
    assert [oct(file.stat().st_mode & 0o777) for file in site.files[:2]] == ["0o644"] * 2
    assert statuses(site.bench.undo()) == ["done"]
    assert site.contents() == {}


def test_names_beside_them_are_nobodys_to_write(site: Site) -> None:
    elsewhere = site.folder / "elsewhere"
    elsewhere.write_text("of somebody\n")
    for file in site.files:
        for end in (".new", ".old", ".tmp", "~"):
            Path(f"{file}{end}").symlink_to(elsewhere)
    assert statuses(site.bench.apply()) == ["done"]
    assert statuses(site.bench.undo()) == ["done"]
    assert elsewhere.read_text() == "of somebody\n"
    assert len([path for path in site.etc.rglob("*") if path.is_symlink()]) == 12


def test_a_reload_that_is_refused_leaves_the_files_that_were_there(site: Site) -> None:
    site.files[1].write_text("the former policy\n")
    site.files[1].chmod(0o640)
    (site.folder / "refuse").touch()
    (result,) = site.bench.apply().results.values()
    assert result.detail is not None
    assert "has its former rules again: no such port" in result.detail
    assert site.contents() == {"remedy.xml": "the former policy\n"}
    assert site.files[1].stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another user: it needs root")
def test_where_a_user_could_lead_root_elsewhere_nothing_is_written(site: Site) -> None:
    os.chown(site.files[1].parent, 65534, 65534)
    (result,) = site.bench.apply().results.values()
    assert "in a folder of uid 65534" in str(result.detail)
    assert site.contents() == {}
