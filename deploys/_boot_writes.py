"""Lines that write settings of the kernel and files at boot, by other ways than sysctl.d. Not a remedy.

``next_boot`` says what these make of the host where it is something else now: tmpfiles.d, udev rules and
scripts. Sources: tmpfiles.d(5), udev(7) (SYSCTL{...}, ATTR{mtu}), sysctl(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from remedy.bounds import fits_name
from remedy.deploys._peers import Place
from remedy.plan import Workbench
from remedy.probe import File, Mention, Sysctls
from remedy.values import Fact, Unknown

TMPFILES = ("/etc/tmpfiles.d/", "/usr/local/lib/tmpfiles.d/", "/usr/lib/tmpfiles.d/")
UDEV = ("/etc/udev/rules.d/", "/usr/local/lib/udev/rules.d/", "/usr/lib/udev/rules.d/")

# Types of tmpfiles.d that change a path which is there: written, emptied, replaced, removed.
_CHANGING = re.compile(r"^([wFrRD]|[fLC](?=[^ ]*\+))[+!=~^$-]*$")
_SYSCTL = re.compile(r"\bsysctl\s(?:.*\s)?([\w./*-]+)\s?=\s?[\"']?([^\s\"';&|]+)")
_ECHO = re.compile(
    r"\b(?:echo|printf)\s+(?:-\w+\s+)*[\"']?([^\"'>]+?)[\"']?\s*>+\s*(/(?:proc/sys|sys)/[^\s;&|\"']+)"
)
_UDEV_SYSCTL = re.compile(r"SYSCTL\{([^}]+)\}\s*:?=\s*\"([^\"]*)\"")
_UDEV_MTU = re.compile(r"ATTR\{mtu\}\s*:?=\s*\"(\d+)\"")
_UDEV_NAME = re.compile(r"(?:KERNEL|NAME)==\"([^\"]+)\"")
_MTU = re.compile(r"/sys/class/net/([^/]+)/mtu")


def note_writes(
    bench: Workbench[Any],
    mentions: Sequence[Mention],
    place: Place | None,
    accepted: Sequence[str],
    scripts: tuple[str, ...],
) -> None:
    """Name what is written at boot and is something else now.

    Args:
        bench: of the host.
        mentions: lines of files.
        place: of the host in the cluster's network; None where that is not known.
        accepted: lines, with their files, that are right as they are.
        scripts: paths, or beginnings of paths, of what runs at boot.
    """
    for mention in mentions:
        text = mention.text.strip()
        if text.startswith(("#", ";")) or f"{mention.path}: {text}" in accepted:
            continue
        quote = "'" if '"' in text else '"'
        for path, value in _writes(mention.path, text, scripts):
            said = _difference(bench, path, value, place)
            if said:
                bench.blocked(
                    f"after the next boot, {said}",
                    f"{mention.path}:{mention.line}: {text[:160]}",
                    "Remove that line, or write there what is to be. If it is right, add to next_boot.accept "
                    f"in remedy.yaml: {quote}{mention.path}: {text}{quote}",
                )


def _writes(file: str, text: str, scripts: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    """Yield what a line writes, where something carries it out at boot: path and value.

    What has a variable in it is known only to the shell that runs it.
    """
    if file.startswith(TMPFILES):
        writes = _of_tmpfiles(text)
    elif file.startswith(UDEV):
        writes = _of_udev(text)
    elif file.startswith(scripts) and ("cron" not in file or "@reboot" in text):
        writes = _of_script(text)
    else:
        return
    yield from ((path, value) for path, value in writes if "$" not in f"{path}{value}")


def _of_tmpfiles(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the path that a line writes, and what; None where it is not a value."""
    words = [word.strip("\"'") for word in text.split(None, 6)]
    if len(words) < 2 or not _CHANGING.match(words[0]):
        return
    value = words[6] if len(words) > 6 else ""
    yield words[1], value if words[0][0] in "wfF" else None


def _of_udev(text: str) -> Iterator[tuple[str, str | None]]:
    for key, value in _UDEV_SYSCTL.findall(text):
        yield f"/proc/sys/{_as_path(key)}", value
    mtu, name = _UDEV_MTU.search(text), _UDEV_NAME.search(text)
    if mtu is not None:
        yield f"/sys/class/net/{name[1] if name else '*'}/mtu", mtu[1]


def _of_script(text: str) -> Iterator[tuple[str, str | None]]:
    for key, value in _SYSCTL.findall(text):
        yield f"/proc/sys/{_as_path(key)}", value
    for value, path in _ECHO.findall(text):
        yield path, value


def _as_path(key: str) -> str:
    return (
        key
        if "/" in key.split(".")[0]
        else key.replace("/", "\0").replace(".", "/").replace("\0", ".")
    )


def _difference(bench: Workbench[Any], path: str, value: str | None, place: Place | None) -> str:
    """Return what a write makes of the host, "" where it is so now or remedy does not know the path."""
    new = " ".join((value or "").replace("\\n", " ").split())
    if path.startswith("/proc/sys/"):
        return _of_sysctl(bench.host.sysctls, path.removeprefix("/proc/sys/"), new)
    if match := _MTU.fullmatch(path):
        carrier = place.carrier if place is not None else None
        if carrier is not None and fits_name(carrier.name, match[1]) and new != str(carrier.mtu):
            return f"the MTU of {carrier.name} is {new}, and now it is {carrier.mtu}"
        return ""
    file = bench.host.files.get(path)
    if not isinstance(file, File) or not file.exists or not path.startswith("/etc/"):
        return ""
    wanted = None if value is None else value.encode().replace(b"\\n", b"\n").strip()
    return "" if wanted == file.content.strip() else f"{path} is written anew or removed"


def _of_sysctl(sysctls: Fact[Sysctls], path: str, new: str) -> str:
    if isinstance(sysctls, Unknown) or not new:
        return ""
    pattern = path.translate(str.maketrans("/.", "./"))
    for key, live in sysctls.live.items():
        if fits_name(key, pattern) and live != new:
            return f"{key} is {new}, and now it is {live}"
    return ""
