"""The lab's root file system comes from the archive that this machine installs from."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import LabError
from remedy.lab import sources
from remedy.lab.sources import Archive


def _etc(folder: Path, *, codename: str = "trixie", **files: str) -> Path:
    (folder / "apt/sources.list.d").mkdir(parents=True)
    (folder / "os-release").write_text(
        f'PRETTY_NAME="Some Linux"\nVERSION_CODENAME={codename}\n', encoding="utf-8"
    )
    for name, text in files.items():
        path = name.replace("__", ".")
        place = "apt" if path == "sources.list" else "apt/sources.list.d"
        (folder / place / path).write_text(text, encoding="utf-8")
    return folder


def test_one_line_sources() -> None:
    text = """\
# deb http://commented.example/debian trixie main
deb-src http://mirror.example/debian trixie main
deb [ arch=amd64 signed-by=/usr/share/keyrings/a.gpg ] http://mirror.example/debian trixie main contrib # x
deb http://plain.example/debian trixie
"""
    assert list(sources.parse_list(text)) == [
        Archive(
            "http://mirror.example/debian",
            "trixie",
            ("main", "contrib"),
            "/usr/share/keyrings/a.gpg",
        )
    ]


def test_deb822_sources() -> None:
    text = """\
# A comment
Types: deb deb-src
URIs: http://one.example/debian
  http://two.example/debian
Suites: trixie trixie-updates
# Another, in the middle of a paragraph
Components: main
Signed-By: /usr/share/keyrings/a.gpg

Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb
URIs: http://inline.example/debian
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc: def
"""
    found = list(sources.parse_sources(text))
    assert [(one.mirror, one.suite) for one in found] == [
        ("http://one.example/debian", "trixie"),
        ("http://one.example/debian", "trixie-updates"),
        ("http://two.example/debian", "trixie"),
        ("http://two.example/debian", "trixie-updates"),
        ("http://inline.example/debian", "trixie"),
    ]
    assert [one.keyring for one in found] == ["/usr/share/keyrings/a.gpg"] * 4 + [None]


def test_the_release_is_looked_for_and_third_parties_are_passed_over(tmp_path: Path) -> None:
    etc = _etc(
        tmp_path,
        a__list="deb http://vendor.example/apt stable main\ndeb http://tools.example/apt trixie tools\n",
        b__sources="Types: deb\nURIs: cdrom:[x]/ http://m.example/debian\nSuites: trixie\nComponents: main\n",
        c__save="deb http://old.example/debian trixie main\n",
    )
    assert sources.find(etc).mirror == "http://m.example/debian"


def test_a_machine_without_such_sources_is_told_what_to_do(tmp_path: Path) -> None:
    etc = _etc(tmp_path, a__list="deb http://vendor.example/apt stable main\n")
    with pytest.raises(LabError, match="trixie"):
        sources.find(etc)
    (etc / "os-release").write_text("PRETTY_NAME='Other Linux 9'\n", encoding="utf-8")
    with pytest.raises(LabError, match="Other Linux 9"):
        sources.find(etc)
