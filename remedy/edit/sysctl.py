"""Files of kernel settings that remedy owns as a whole, and what overrides them at boot (sysctl.d(5))."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.probe import HostState, Sysctls, SysctlSetting
from remedy.probe.sysctl import UFW_FILE, parse_settings

_SWAP = str.maketrans("/.", "./")


def render(settings: Mapping[str, str], why: str) -> bytes:
    """Return the content of a file of settings.

    Args:
        settings: dotted name to value.
        why: what it is for, one line.
    """
    lines = [f"{_named(key)} = {value}\n" for key, value in settings.items()]
    return f"# Written by remedy: {why}\n{''.join(lines)}".encode()


def _named(key: str) -> str:
    """Return a key as a file has it: with slashes where a part of it holds a dot."""
    return key.translate(_SWAP) if "/" in key else key


def persisted_with(sysctls: Sysctls, path: str, content: bytes | None) -> Sysctls:
    """Return the settings of the next boot if the file at ``path`` held ``content`` (None: were not there)."""
    others = [line for line in sysctls.persisted if line.path != path]
    at = next((i for i, line in enumerate(others) if _later(line.path, path)), len(others))
    lines = parse_settings(path, (content or b"").decode().splitlines())
    return sysctls.model_copy(update={"persisted": (*others[:at], *lines, *others[at:])})


def _later(path: str, reference: str) -> bool:
    """Return whether the file at ``path`` is applied after ``reference``: by its name, whatever the folder."""
    return path == UFW_FILE or path.rpartition("/")[2] > reference.rpartition("/")[2]


def beaten_by(
    state: HostState, path: str, settings: Mapping[str, str]
) -> tuple[tuple[str, SysctlSetting], ...]:
    """Return each of ``settings`` that another file decides at boot though ``path`` holds them, and where."""
    if not isinstance(state.sysctls, Sysctls):
        return ()
    after = persisted_with(state.sysctls, path, render(settings, ""))
    winners = {key: after.winner(key) for key in settings}
    return tuple(
        (key, winner)
        for key, winner in winners.items()
        if winner is not None and winner.path != path and winner.value != settings[key]
    )


def path_of(key: str) -> str:
    """Return the path of a setting below /proc/sys."""
    return f"/proc/sys/{key.translate(_SWAP)}"


def key_of(path: str) -> str:
    """Return the dotted name of the setting at a path below /proc/sys."""
    return path.removeprefix("/proc/sys/").translate(_SWAP)
