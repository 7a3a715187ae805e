"""Lines that write settings of the kernel and files at boot, by other ways than sysctl.d. Not a remedy.

``next_boot`` says what these make of the host where it is something else now: tmpfiles.d, udev rules and
scripts. Sources: tmpfiles.d(5), udev(7) (SYSCTL{...}, ATTR{mtu}), sysctl(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from remedy.bounds import fits_name
from remedy.deploys._boot_scripts import Outline, Write, as_path, writes_of
from remedy.deploys._peers import Place
from remedy.plan import Workbench
from remedy.probe import File, Interface, Mention, Sysctls
from remedy.values import Fact, Unknown

TMPFILES = ("/etc/tmpfiles.d/", "/usr/local/lib/tmpfiles.d/", "/usr/lib/tmpfiles.d/")
UDEV = ("/etc/udev/rules.d/", "/usr/local/lib/udev/rules.d/", "/usr/lib/udev/rules.d/")

# Types of tmpfiles.d that change a path which is there: written, emptied, replaced, removed.
_CHANGING = re.compile(r"^([wFrRD]|[fLC](?=[^ ]*\+))[+!=~^$-]*$")
_UDEV_SYSCTL = re.compile(r"SYSCTL\{([^}]+)\}\s*:?=\s*\"([^\"]*)\"")
_UDEV_MTU = re.compile(r"ATTR\{mtu\}\s*:?=\s*\"(\d+)\"")
_UDEV_NAME = re.compile(r"(?:KERNEL|NAME)==\"([^\"]+)\"")
_MTU = re.compile(r"/sys/class/net/([^/]+)/mtu")


def note_writes(
    bench: Workbench[Any],
    mentions: Sequence[Mention],
    place: Place | None,
    accepted: Sequence[str],
) -> None:
    """Name what is written at boot and is something else now; UNKNOWN where that depends on something.

    Args:
        bench: of the host.
        mentions: lines of files.
        place: of the host in the cluster's network; None where that is not known.
        accepted: lines, with their files, that are right as they are.
    """
    for mention, write in writes(mentions):
        text = mention.text.strip()
        difference = _difference(bench, write, place)
        if difference and f"{mention.path}: {text}" not in accepted:
            quote = "'" if '"' in text else '"'
            note = bench.blocked if write.sure else bench.unknown
            note(
                f"after the next boot, {difference}",
                f"{mention.path}:{mention.line}: {text[:160]}",
                "Remove that line, or write there what is to be. If it is right, add to next_boot.accept "
                f"in remedy.yaml: {quote}{mention.path}: {text}{quote}",
            )


def writes(mentions: Sequence[Mention]) -> Iterator[tuple[Mention, Write]]:
    """Yield what lines write at boot, each with its line."""
    outline = Outline(mentions)
    for mention in mentions:
        if not mention.text.lstrip().startswith(("#", ";")):
            for write in _writes(mention, outline):
                yield mention, write


def _writes(mention: Mention, outline: Outline) -> Iterator[Write]:
    """Yield what a line writes, where something carries it out at boot."""
    if mention.path.startswith(TMPFILES):
        yield from _of_tmpfiles(mention.text.strip())
    elif mention.path.startswith(UDEV):
        yield from _of_udev(mention.text)
    else:
        yield from writes_of(mention, outline)


def _of_tmpfiles(text: str) -> Iterator[Write]:
    words = [word.strip("\"'") for word in text.split(None, 6)]
    if len(words) < 2 or not _CHANGING.match(words[0]) or "%" in words[1]:
        return
    value = words[6] if len(words) > 6 else ""
    yield Write(words[1], value if words[0][0] in "wfF" else None)


def _of_udev(text: str) -> Iterator[Write]:
    for key, value in _UDEV_SYSCTL.findall(text):
        if "$" not in key + value:
            yield Write(as_path(key), value)
    mtu, name = _UDEV_MTU.search(text), _UDEV_NAME.search(text)
    if mtu is not None:
        yield Write(f"/sys/class/net/{name[1] if name else '*'}/mtu", mtu[1])


def _difference(bench: Workbench[Any], write: Write, place: Place | None) -> str:
    """Return what a write makes of the host, "" where it is so now or remedy does not know the path."""
    path = write.path
    known = write.value is not None
    new = " ".join((write.value or "").replace("\\n", " ").split())
    becomes = (
        f"{'is' if write.sure else 'may be'} {new if known else 'something else'}, and now it is"
    )
    if path.startswith("/proc/sys/"):
        live = _live(bench.host.sysctls, path.removeprefix("/proc/sys/"), new, known=known)
        return f"{live[0]} {becomes} {live[1]}" if live and (new or not known) else ""
    if match := _MTU.fullmatch(path):
        for interface in _judged(place, match[1]):
            if new != str(interface.mtu):
                return f"the MTU of {interface.name} {becomes} {interface.mtu}"
        return ""
    return (
        f"{path} is written again or removed"
        if _is_other(bench.host.files.get(path), write)
        else ""
    )


def _judged(place: Place | None, pattern: str) -> Iterator[Interface]:
    """Yield the interfaces that a pattern of names is for, of those by which jobs send."""
    if place is None:
        return
    if fits_name(place.carrier.name, pattern):
        yield place.carrier
    yield from (i for i in place.network.interfaces if i.kind == "loopback" and i.name == pattern)


def _is_other(file: Fact[File] | None, write: Write) -> bool:
    """Return whether a write makes another file of one in /etc that remedy knows."""
    if not isinstance(file, File) or not file.exists or not file.path.startswith("/etc/"):
        return False
    target = None if write.value is None else write.value.encode().replace(b"\\n", b"\n").strip()
    return target != file.content.strip()


def _live(sysctls: Fact[Sysctls], path: str, new: str, *, known: bool) -> tuple[str, str] | None:
    """Return the setting that a path of /proc/sys stands for, and its value, where that is another."""
    if isinstance(sysctls, Unknown):
        return None
    pattern = path.translate(str.maketrans("/.", "./"))
    for key, live in sysctls.live.items():
        if fits_name(key, pattern) and not (known and " ".join(live.split()) == new):
            return key, live
    return None
