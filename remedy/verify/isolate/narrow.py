"""From a group that fails to what makes it fail, where its hosts are not known to be good.

A fault is a host or a pair, so each smallest group that fails has one host or two. There are two ways:

- A hunt that is alone tests all parts of its group at once. If all of them work, what is broken is a pair that
  lies across them, and each host of it is good. Halves are best for that: more parts would tell less of a
  pair (``pairs``). Only small groups go into as many parts as a round may hold.
- Where several hunts go on, each puts its group in a line whose beginning is known to work and finds, with one
  test a round, the first host with which it no longer does. Mostly that is a broken host, so a part that worked
  is let go: with other good hosts it shows broken pairs early. Where a single fault shows it stays in the next
  test: a fault that lies between two halves is found at the same cost as one inside a half.

Both end with a few suspects, and each of these is tested with a good partner, all of them in the same round.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from remedy.verify.isolate.hunt import Question, Reply, Span, confirmation, judged
from remedy.verify.isolate.model import TestResult
from remedy.verify.isolate.pairs import between
from remedy.verify.isolate.steps import End, SideBySide, in_turn, portions

# A hunt that is alone halves a larger group and tests all neighbours of a smaller one, two by two. Where two
# hunts go on a larger group goes into a few parts.
LARGE = 16
FEW = 4
# So many suspects are tested each with a partner, and two at once at least: a round costs more than a test.
SUSPECTS = 4
LEAST = 2


def hunt(line: Sequence[str], sound: int, span: Span, absentees: Sequence[str] = ()) -> SideBySide:
    """Find what makes a group fail.

    Args:
        line: a group that failed.
        sound: how many hosts at its beginning are known to work together; 0 where nothing is known.
        span: is kept up to date with the hosts that the hunt is after.
        absentees: hosts that the group itself reported as absent.

    Returns:
        faults, and hunts that go on by themselves; nothing where it works after all, because it comes and goes.
    """
    low, high = sound, len(line)
    parts = [tuple(line[:sound])]
    span.hosts = frozenset(line)
    if absentees and (ends := (yield from each(absentees, line, span))):
        return ends
    wide = span.alone or (span.width >= FEW and high - low > LARGE)
    if wide and low < 2 and high - low > SUSPECTS:
        return (yield from _parted(tuple(line[low:]), span))
    while high - low > max(LEAST, min(span.width, SUSPECTS)):
        middle = max((low + high) // 2, 2)  # a host alone has nobody to fail with
        first = 0 if span.joined or middle - low < 2 else low
        (reply,) = yield (Question(tuple(line[first:middle]), "half"),)
        low, high = (middle, high) if reply.passed else (low, middle)
        if reply.passed:
            parts = [*(parts if first else ()), tuple(line[first:middle])]
        span.hosts = frozenset(line[0 if span.joined else low : high])
        if reply.passed:
            continue
        hinted = _hinted(reply.result, line[low:high])
        if hinted and (ends := (yield from each(hinted, line[:high], span))):
            return ends
    suspects = line[low:high]
    if ends := (yield from each(suspects, line[:high], span)):
        return ends
    # Each of them works with a good partner: what is broken is a link between two hosts of the line.
    return (yield from between([*parts, *((suspect,) for suspect in suspects)], span))


def each(suspects: Sequence[str], line: Collection[str], span: Span) -> SideBySide:
    """Test each of some suspects with a good partner, as many in a round as the hunt may.

    Args:
        suspects: the hosts.
        line: hosts of which each may be the other end of a broken link.
        span: of the hunt.

    Returns:
        the faults of the first round that shows any.
    """
    remaining = list(suspects)
    while remaining:
        count = max(LEAST, span.width)
        now, remaining = remaining[:count], remaining[count:]
        replies = yield [confirmation(suspect, line) for suspect in now]
        ends: list[End] = []
        for suspect, reply in zip(now, replies, strict=True):
            ends += yield from in_turn(judged(suspect, line, reply))
        if ends:
            return ends
    return []


def _parted(group: tuple[str, ...], span: Span) -> SideBySide:
    """Test all parts of a group at once; each that fails is hunted in by itself."""
    span.hosts = frozenset(group)
    halved = span.alone and len(group) > LARGE
    count = 2 if halved else len(group) // 2 if span.alone else FEW
    parts = portions(group, count)
    # Who joined has been seen with both sides of a pair if all works: of two halves only.
    replies = yield [Question(part, "half", interest=part if halved else ()) for part in parts]
    failed = [
        _of(part, reply) for part, reply in zip(parts, replies, strict=True) if not reply.passed
    ]
    return failed or (yield from between(parts, span))


def _of(part: tuple[str, ...], reply: Reply) -> End:
    """The hunt in a part that failed."""
    return partial(hunt, part, 0, absentees=_hinted(reply.result, part))


def _hinted(result: TestResult | None, among: Sequence[str]) -> list[str]:
    """The hosts that a failed group reported as absent."""
    return [host for host in among if result is not None and host in result.missing]
