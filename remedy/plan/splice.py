"""Splices: what a change does to a file, without the rest of the file.

A plan needs the bytes that it takes out and puts in, and the digest of the whole; the lines of others stay on
their host. Where a file holds much on one line (JSON), the splice is that part of the line which changes.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from remedy.edit.block import END
from remedy.plan.change import Change, FileAction, Splice, sha256

# Files in which one line can hold the settings of many: there the rest of a line is not the plan's.
PACKED = (".json",)

# How each managed block begins (remedy.edit).
BLOCK = b"# BEGIN remedy"

# Pairs of equal lines that are compared. Where one line stands thousands of times, all between the first change
# and the last is one splice.
MOST_PAIRS = 1_000_000

# Longer files are put together by their hosts.
LARGEST = 1 << 16

# The block that comes into all files of a fleet is hashed for few of them.
_digest = lru_cache(maxsize=16)(sha256)

_Cut = tuple[int, bytes, bytes]  # where, what is there, what comes in its place


def spliced(
    changes: Iterable[Change], contents: Mapping[str, bytes]
) -> tuple[tuple[Change, ...], dict[str, bytes]]:
    """Return changes that hold splices in place of whole contents, and the bytes that these stand for.

    Args:
        changes: with the digests of whole files.
        contents: the whole files, by digest.
    """
    blobs: dict[str, bytes] = {}
    return tuple(_spliced(change, contents, blobs) for change in changes), blobs


def _spliced(change: Change, contents: Mapping[str, bytes], blobs: dict[str, bytes]) -> Change:
    action = change.action
    if not isinstance(action, FileAction) or action.after is None:
        return change
    if action.before is None:
        blobs[action.after] = contents[action.after]
        return change
    before, after = contents[action.before], contents[action.after]
    packed = action.real_path.endswith(PACKED)
    splices = []
    for offset, old, new in cuts(before, after, packed=packed):
        for text in (old, new):
            if text:
                blobs.setdefault(_digest(text), text)
        splices.append(
            Splice(
                offset=offset,
                line=before.count(b"\n", 0, offset) + 1,
                length=len(old),
                before=_digest(old) if old else None,
                after=_digest(new) if new else None,
            )
        )
    return change.model_copy(
        update={"action": action.model_copy(update={"splices": tuple(splices)})}
    )


def cuts(before: bytes, after: bytes, *, packed: bool = False) -> list[_Cut]:
    """Return what turns ``before`` into ``after``: whole lines, or with ``packed`` parts of them.

    >>> cuts(b"a\\nb\\n", b"a\\nc\\n")
    [(2, b'b\\n', b'c\\n')]
    >>> cuts(b'{"a": 64, "b": 1}', b'{"a": 10, "b": 1}', packed=True)
    [(6, b'64', b'10')]
    """
    by_line = [
        (at + offset, gone, come)
        for at, old, new in _pairs(before, after)
        for offset, gone, come in _line_cuts(old, new)
    ]
    return [_trimmed(*cut) for cut in by_line] if packed else by_line


def _pairs(before: bytes, after: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the parts of a file that are compared: where each begins, as it is there now and as it is to be.

    A managed block is one of them, however near other lines change: so it is the same piece on all hosts.
    """
    old, new = _parted(before), _parted(after)
    if bool(old[1]) != bool(new[1]) and (old[2] or new[2]):
        old, new = (before, b"", b""), (after, b"", b"")  # whose block is in the midst of lines
    at = 0
    for old_line, new_line in zip(old, new, strict=True):
        yield at, old_line, new_line
        at += len(old_line)


def _parted(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what is before a managed block, the block with its marks, and what is after it."""
    first = content.find(BLOCK)
    last = content.rfind(END)
    if first < 0 or last < first or content[first - 1 : first] not in (b"", b"\n"):
        return content, b"", b""
    stop = content.find(b"\n", last) + 1 or len(content)
    return content[:first], content[first:stop], content[stop:]


def join(before: bytes, splices: Iterable[Splice], blobs: Mapping[str, bytes]) -> bytes:
    """Return a file after its splices; what the host does with ``head`` and ``tail``."""
    parts, at = [], 0
    for splice in splices:
        parts += [before[at : splice.offset], blobs[splice.after] if splice.after else b""]
        at = splice.offset + splice.length
    return b"".join([*parts, before[at:]])


def whole(
    changes: Iterable[Change], content: Callable[[str], bytes | None], blobs: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Return the new contents that splices make, by digest, where the former ones are known.

    Those that the plan's readers were not shown as they are have none: their host judges them.

    Args:
        changes: of one host.
        content: returns what is known to be in a file of it; None where that is not known.
        blobs: the bytes that splices stand for.
    """
    contents = {}
    for change in changes:
        action = change.action
        if not isinstance(action, FileAction) or not action.splices or action.after is None:
            continue
        before = content(action.path)
        if before is None or len(before) > LARGEST or not _are_there(before, action.splices):
            continue
        if all(splice.after is None or splice.after in blobs for splice in action.splices):
            after = join(before, action.splices, blobs)
            if (sha256(before), sha256(after)) == (action.before, action.after):
                contents[action.after] = after
    return contents


def placed(change: Change, blobs: Mapping[str, bytes]) -> Change:
    """Return a change that takes another back, its splices at their places in the file as that left it.

    Args:
        change: of ``inverse``, its splices still at the places of the former change.
        blobs: the bytes that splices stand for.
    """
    action = change.action
    if not isinstance(action, FileAction) or action.splices is None:
        return change
    moved, lines, splices = 0, 0, []
    for splice in action.splices:
        gone, come = (blobs[d] if d else b"" for d in (splice.before, splice.after))
        splices.append(
            splice.model_copy(
                update={
                    "offset": splice.offset + moved,
                    "line": splice.line + lines,
                    "length": len(gone),
                }
            )
        )
        moved += len(gone) - len(come)
        lines += gone.count(b"\n") - come.count(b"\n")
    update = {"action": action.model_copy(update={"splices": tuple(splices)})}
    return change.model_copy(update=update)


def _are_there(content: bytes, splices: Iterable[Splice]) -> bool:
    """Return whether the bytes that go are those that the splices name, on the lines that they name."""
    return all(
        splice.line == content.count(b"\n", 0, splice.offset) + 1
        and (splice.before is not None) == bool(splice.length)
        and splice.before in (None, sha256(content[splice.offset : splice.offset + splice.length]))
        for splice in splices
    )


# The same block takes the place of the same one on most hosts of a fleet.
@lru_cache(maxsize=16)
def _line_cuts(before: bytes, after: bytes) -> tuple[_Cut, ...]:
    """Return what turns a part of a file into another, in whole lines."""
    if before == after:
        return ()
    if not (before and after):  # a block that comes, or goes
        return ((0, before, after),)
    return tuple(_by_line(before.splitlines(keepends=True), after.splitlines(keepends=True)))


def _by_line(old: list[bytes], new: list[bytes]) -> Iterator[_Cut]:
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[begin : len(old) - end], new[begin : len(new) - end]
    offset = sum(map(len, old[:begin]))
    if not left or not right:  # the usual case: a block at the end, a line more
        if left or right:
            yield offset, b"".join(left), b"".join(right)
        return
    counts = Counter(right)
    if sum(counts[line] for line in left) > MOST_PAIRS:
        yield offset, b"".join(left), b"".join(right)
        return
    starts = [offset]
    for line in left:
        starts.append(starts[-1] + len(line))
    for kind, a, b, c, d in difflib.SequenceMatcher(None, left, right).get_opcodes():
        if kind != "equal":
            yield starts[a], b"".join(left[a:b]), b"".join(right[c:d])


def _trimmed(offset: int, old: bytes, new: bytes) -> _Cut:
    """Return a cut without what both sides begin and end with."""
    least = min(len(old), len(new))
    head = 0
    while head < least and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < least - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return offset + head, old[head : len(old) - tail], new[head : len(new) - tail]
