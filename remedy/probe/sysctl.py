"""Kernel settings: as they are, and as they will be after the next boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from pydantic import SkipValidation

from remedy.bounds import fits_name
from remedy.probe.files import File
from remedy.probe.frames import Sections, as_text
from remedy.values import Fact, Record, Unknown, once_alike, shared

DIRECTORIES = ("/etc/sysctl.d/", "/usr/local/lib/sysctl.d/", "/usr/lib/sysctl.d/")
"""Where settings are kept: a file hides those of the same name in later directories (sysctl.d(5)). What is in
/run/sysctl.d is gone at the next boot."""

UFW_FILE = "/etc/ufw/sysctl.conf"

_PROC = "/proc/sys/"
_SWAP = str.maketrans("/.", "./")


class SysctlSetting(Record):
    """One line of a file of settings: what it sets, to what, and where it stands."""

    key: str
    value: str
    path: str
    line: int


class Sysctls(Record):
    """Kernel settings.

    ``live`` maps dotted names to values, white space folded to one space. A dot inside an interface's name is
    written "/", as sysctl(8) does. ``persisted`` are the lines of all files in the order in which they are
    applied at boot: of two that set one key the later wins, but an exact key always wins over a pattern.
    ``unread`` are files that could not be read, so that what is persisted may not be all. ``excluded`` are keys
    that no pattern sets (a line ``-KEY`` without a value).
    """

    live: Mapping[str, str]
    # The same object for all hosts with these lines, which a validation would copy for each.
    persisted: SkipValidation[tuple[SysctlSetting, ...]]
    unread: tuple[str, ...]
    excluded: frozenset[str] = frozenset()

    def winner(self, key: str) -> SysctlSetting | None:
        """Return the line that decides ``key`` at boot, ``None`` when no file sets it."""
        exact, patterns = _deciding(self.persisted)
        if key in exact:
            return exact[key]
        if key in self.excluded:
            return None
        return next((setting for setting in patterns if fits_name(key, setting.key)), None)

    def winners(self, keys: Iterable[str]) -> dict[str, SysctlSetting]:
        """Return the lines that decide ``keys`` at boot, without those that no file sets."""
        exact, patterns = _deciding(self.persisted)
        if not patterns:
            return {key: exact[key] for key in keys if key in exact}
        return {key: line for key in keys if (line := self.winner(key)) is not None}


@once_alike
def _deciding(
    persisted: tuple[SysctlSetting, ...],
) -> tuple[Mapping[str, SysctlSetting], tuple[SysctlSetting, ...]]:
    """Return the line that decides each key, and those with a pattern, the one that is applied last first."""
    exact = {setting.key: setting for setting in persisted}
    return exact, tuple(setting for setting in reversed(persisted) if "*" in setting.key)


def parse_sysctls(sections: Sections, files: Mapping[str, Fact[File]], *, ufw: bool) -> Sysctls:
    """Read the lines of /proc/sys in section ``kernel``, and the files of settings.

    Args:
        sections: of the probe.
        files: all files of the probe.
        ufw: whether ufw is enabled: it applies a file of its own after all others.
    """
    live = tuple(
        _live(path, lines[0])
        for path, lines in sections.lines("kernel").items()
        if path.startswith(_PROC) and path != "/proc/sys/kernel/random/boot_id"
    )
    return _sysctls(live, *parse_persisted(files, ufw=ufw))


@shared
def _live(path: str, line: str) -> tuple[str, str]:
    """Return the name of a setting and its value."""
    return path[len(_PROC) :].translate(_SWAP), " ".join(line.split())


@shared
def _sysctls(
    live: tuple[tuple[str, str], ...],
    persisted: tuple[SysctlSetting, ...],
    unread: tuple[str, ...],
    excluded: frozenset[str],
) -> Sysctls:
    return Sysctls(live=dict(live), persisted=persisted, unread=unread, excluded=excluded)


def parse_persisted(
    files: Mapping[str, Fact[File]], *, ufw: bool
) -> tuple[tuple[SysctlSetting, ...], tuple[str, ...], frozenset[str]]:
    """Read the files of settings in the order of boot.

    Args:
        files: all files of the probe.
        ufw: whether ufw is enabled: it applies a file of its own after all others.

    Returns:
        The settings in the order in which they are applied, the paths that could not be read, and the keys that
        patterns pass over.
    """
    settings: list[tuple[SysctlSetting, ...]] = []
    unread = []
    excluded = set[str]()
    for path in _order(files, ufw=ufw):
        file = files[path]
        if isinstance(file, Unknown):
            unread.append(path)
        elif file.exists:
            here, passed = _settings_of(path, file.content)
            settings.append(here)
            excluded |= passed
    return _joined(*settings), tuple(unread), frozenset(excluded)


@once_alike
def _joined(*settings: tuple[SysctlSetting, ...]) -> tuple[SysctlSetting, ...]:
    """Return the settings of several files as one object for all hosts that have these files."""
    return tuple(chain.from_iterable(settings))


@shared
def _settings_of(path: str, content: bytes) -> tuple[tuple[SysctlSetting, ...], frozenset[str]]:
    """Return the settings of a file, and the keys that its patterns pass over."""
    lines = as_text(content).splitlines()
    words = (line.strip() for line in lines)
    excluded = {_dotted(word[1:]) for word in words if word[:1] == "-" and "=" not in word}
    return tuple(parse_settings(path, lines)), frozenset(excluded)


def parse_settings(path: str, lines: Iterable[str]) -> list[SysctlSetting]:
    """Return the settings in the lines of one file (sysctl.conf(5))."""
    settings = []
    for number, line in enumerate(lines, 1):
        key, equals, value = line.strip().partition("=")
        key = key.strip().removeprefix("-")
        if equals and key and not key.startswith(("#", ";")):
            settings.append(
                SysctlSetting(
                    key=_dotted(key), value=" ".join(value.split()), path=path, line=number
                )
            )
    return settings


def _order(files: Mapping[str, Fact[File]], *, ufw: bool) -> list[str]:
    """Return the paths in the order of systemd-sysctl(8), by name whatever the directory.

    It reads /etc/sysctl.conf only where a link in one of the directories leads there, as on Debian up to 12 and
    on the Red Hat family.
    """
    by_name: dict[str, str] = {}
    for directory in DIRECTORIES:
        for path in files:
            if path.startswith(directory) and path.endswith(".conf"):
                by_name.setdefault(path[len(directory) :], path)
    order = [by_name[name] for name in sorted(by_name)]
    if ufw and UFW_FILE in files:
        order.append(UFW_FILE)
    return order


def _dotted(key: str) -> str:
    """Return a key in dotted form: the first separator tells which form it is in."""
    slash, dot = key.find("/"), key.find(".")
    return key.translate(_SWAP) if slash >= 0 and (dot < 0 or slash < dot) else key
