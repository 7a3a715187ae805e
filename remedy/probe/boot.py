"""What the next boot needs: sshd's own word on its configuration, and the devices that /etc/fstab names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from remedy.probe.frames import NoAnswerError, Sections
from remedy.values import Record

_NO_ANSWER = ("124", "126", "127", "137", "143")
_KEYWORD = re.compile(r"[a-z][a-z0-9]+")
_NO_ERROR = re.compile(r"[Dd]eprecated|[Uu]nsupported option|WARNING|debug\d")
MOST_LINES = 2_000


class Sshd(Record):
    """What sshd makes of its configuration at its next start or reload (sshd(8), -T).

    Args:
        errors: what it says where it refuses it; () where it takes it, or has read it as it is.
        options: by keyword in lower case, each value; empty where sshd has read its files as they are.
        user: who logged in for this probe.
        client: from which address.
        address: to which address of the host.
        port: to which port; 0 where that is not known.
        keys: files with the user's keys that are there.
        refuses: a file by which Debian's unit does not start sshd; "" for none.
    """

    errors: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = {}
    user: str = ""
    client: str = ""
    address: str = ""
    port: int = 0
    keys: tuple[str, ...] = ()
    refuses: str = ""


class BootMounts(Record):
    """Of the sources in /etc/fstab that are devices, those that are there."""

    there: frozenset[str] = frozenset()


def parse_sshd(sections: Sections) -> Sshd | None:
    """Read section ``sshd``; None where sshd does not run here.

    Raises:
        NoAnswerError: sshd could not be asked, or gave no answer in time.
    """
    if sections.absent("sshd"):
        return None
    head, _, answer = sections.text("sshd").partition("\nended ")
    lines = head.splitlines()
    status, *answers = answer.splitlines() or [""]
    if len(answers) > MOST_LINES:
        raise NoAnswerError("sshd says more of its configuration than is read")
    if status in _NO_ANSWER:
        raise NoAnswerError(f"sshd -T gave no answer: it ended with {status}")
    connection = [*" ".join(_after("connection", lines)).split(), "", "", "", "", ""]
    return Sshd(
        errors=() if status in ("", "0") else _errors(answers),
        options=_options(answers) if status == "0" else {},
        user=connection[0],
        client=connection[1],
        address=connection[3],
        port=int(connection[4][:5]) if connection[4].isdecimal() else 0,
        keys=_after("keys", answers),
        refuses=next(iter(_after("refuses", lines)), ""),
    )


def _after(word: str, lines: Iterable[str]) -> tuple[str, ...]:
    """Return what comes after a word at the beginning of lines."""
    return tuple(line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} "))


def _options(lines: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each keyword, of all its lines together."""
    options: dict[str, tuple[str, ...]] = {}
    for line in lines:
        word, blank, rest = line.partition(" ")
        if blank and _KEYWORD.fullmatch(word):
            options[word] = (*options.get(word, ()), *rest.split())
    return options


def _errors(lines: list[str]) -> tuple[str, ...]:
    """Return why sshd refuses its configuration; what it says of every line that it passes over is left out."""
    errors = [line.strip() for line in lines if line.strip() and not _NO_ERROR.search(line)]
    return tuple(errors[-4:]) or ("sshd says nothing",)


def parse_boot_mounts(sections: Sections) -> BootMounts:
    """Read section ``boot-mounts``: a line a source that is there."""
    lines = sections.text("boot-mounts").splitlines()
    there = (line.removeprefix("there ") for line in lines if line.startswith("there "))
    return BootMounts(there=frozenset(there))
