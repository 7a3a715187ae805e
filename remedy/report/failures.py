"""Errors of many hosts: those with one reason are one line, with the next step for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.text import Text

from remedy.errors import RemedyError, UnreachableError
from remedy.report import folding
from remedy.report.folding import Fold, Specimen
from remedy.text import clipped, counted, folded, limited

REASONS = 7
"""Reasons that are shown, two lines each; hosts with others are named together."""
WIDTH = 400
# What follows a host's name in its error: the address that was asked.
_ADDRESS = re.compile(r" \(([^()\s]+?)(?::(\d+))?\)")
_TIME = re.compile(r"\b\d+(\.\d+)? s\b")


@dataclass(frozen=True)
class HostError:
    """An error of one host.

    Args:
        host: its name.
        error: the error.
        reason: its message behind the name and the address of the host.
        words: the host's own.
        place: the address and port that were asked; "" where its message has none.
    """

    host: str
    error: RemedyError
    reason: str
    words: tuple[str, ...]
    place: str = ""


def _read(host: str, error: RemedyError) -> HostError:
    words = (host, host.partition(".")[0] if "." in host else "")
    if not error.message.startswith(host):
        return HostError(host, error, f": {error.message}", (*words, ""))
    rest = error.message[len(host) :]
    match = _ADDRESS.match(rest)
    if match is None:
        return HostError(host, error, rest, (*words, ""))
    return HostError(host, error, rest[match.end() :], (*words, match[1]), match[0][2:-1])


def error_lines(errors: Mapping[str, RemedyError]) -> Iterator[Text]:
    """Yield the errors of hosts, each reason once with the next step below it.

    Args:
        errors: by host; what is not merely out of reach comes first, then what most hosts have.
    """
    known = [_read(host, error) for host, error in errors.items()]
    words = {item.host: item.words for item in known}
    folds = folding.alike(map(_specimen, known), words)
    folds.sort(key=lambda same: (_is_unreachable(same), -len(same.hosts)))
    for same in folds[:REASONS]:
        yield from _lines(same)
    if folds[REASONS:]:
        rest = [host for same in folds[REASONS:] for host in same.hosts]
        reasons = counted(len(folds) - REASONS, "more reason")
        yield Text(f"  {folded(rest)}: {reasons} (--json has each)", style="red")


def _is_unreachable(errors: Fold[HostError]) -> bool:
    return type(errors.items[0].error) is UnreachableError


def _specimen(item: HostError) -> Specimen[HostError]:
    """Return an error as it is compared: times, and the port of ssh, differ without a meaning."""
    texts = (_TIME.sub("TIME", item.reason), re.sub(r"-p \d+", "-p PORT", item.error.next_step))
    return Specimen(item, item.host, (type(item.error),), texts)


def _lines(errors: Fold[HostError]) -> Iterator[Text]:
    first, hosts = errors.items[0], errors.hosts
    message, step = clipped(first.error.message, WIDTH), first.error.next_step
    if len(hosts) > 1:
        place = f" ({first.host}: {first.place})" if first.place else ""
        message = f"{folded(hosts)}{place}{clipped(first.reason, WIDTH)}"
        for option in ("--limit", "--replace"):
            step = step.replace(f"{option} {first.host}", f"{option} {limited(hosts)}")
        own = step.replace(limited(hosts), "")
        if folding.blurred(own, first.words) != own:
            step = f"{step}  (as for {first.host})"
    yield Text(f"  {message}", style="red")
    if step:
        yield Text(f"    {step}", style="cyan")
