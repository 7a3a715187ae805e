"""Errors of many hosts: those with one reason are one line, with the next step for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from remedy.errors import HostKeyError, RemedyError, UnreachableError
from remedy.sentences import WIDTH, Sentence, as_one, differ, host_names
from remedy.text import clipped, counted, folded, limited

REASONS = 6
"""Reasons that are shown, two lines each; hosts with others are named together."""
# What follows a host's name in its error: the address that was asked.
_ADDRESS = re.compile(r" \(([^()\s]+?)(?::(\d+))?\)")
_SSH_PORT = re.compile(r"-p \d+")


@dataclass(frozen=True)
class HostError:
    """An error of one host.

    Args:
        host: its name.
        error: the error.
        reason: its message behind the name and the address of the host.
        step: what to do next.
        place: the address and port that were asked; "" where its message has none.
    """

    host: str
    error: RemedyError
    reason: Sentence
    step: Sentence
    place: str = ""

    @property
    def shape(self) -> tuple[object, ...]:
        """What is equal for errors that are shown as one."""
        return (type(self.error), self.reason.shape, self.step.shape)


def _read(host: str, error: RemedyError, names: frozenset[str]) -> HostError:
    rest = error.message.removeprefix(host)
    match = _ADDRESS.match(rest) if rest != error.message else None
    place = match[0][2:-1] if match else ""
    rest = rest[match.end() :] if match else rest
    reason = f": {rest}" if rest == error.message else rest
    # The port of ssh differs without a meaning.
    step = _SSH_PORT.sub("-p PORT", error.next_step)
    return HostError(
        host, error, Sentence.of(host, reason, names), Sentence.of(host, step, names), place
    )


def error_lines(errors: Mapping[str, RemedyError]) -> Iterator[Text]:
    """Yield the errors of hosts, each reason once with the next step below it.

    Args:
        errors: by host; what is not merely out of reach comes first, then what most hosts have.
    """
    names = host_names(errors)
    groups: dict[tuple[object, ...], list[HostError]] = {}
    for host, error in errors.items():
        item = _read(host, error, names)
        groups.setdefault(item.shape, []).append(item)
    # Where there is no room for all, keys come first, and then what most hosts have.
    by_weight = sorted(
        groups.values(), key=lambda same: (not isinstance(same[0].error, HostKeyError), -len(same))
    )
    order = sorted(by_weight[:REASONS], key=lambda same: (_is_unreachable(same[0]), -len(same)))
    for same in order:
        yield from _lines(same)
    if more := by_weight[REASONS:]:
        rest = [item.host for same in more for item in same]
        reasons = counted(len(more), "more reason")
        yield Text(f"  {folded(rest)}: {reasons} (--json has each)", style="red")


def _is_unreachable(item: HostError) -> bool:
    return type(item.error) is UnreachableError


def _lines(errors: Sequence[HostError]) -> Iterator[Text]:
    first, hosts = errors[0], [item.host for item in errors]
    message, step = clipped(first.error.message, WIDTH), first.error.next_step
    if len(hosts) > 1:
        place = f" ({first.host}: {first.place})" if first.place else ""
        names = f"{folded(hosts, WIDTH // 2)}{place}"
        reason = as_one([item.reason for item in errors])
        message = f"{names}{clipped(reason, max(WIDTH // 2, WIDTH - len(names)))}"
        if differ([item.step for item in errors]):
            step = f"{step}  (as for {first.host})"
        else:
            for option in ("--limit", "--replace"):
                step = step.replace(f"{option} {first.host}", f"{option} {limited(hosts)}")
    yield Text(f"  {message}", style="red")
    if step:
        yield Text(f"    {step}", style="cyan")
