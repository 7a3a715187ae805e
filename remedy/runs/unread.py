"""Hosts that could not be read, in words: an operator who is asked to go on has to know of them."""

from __future__ import annotations

from collections.abc import Iterable

from remedy.errors import (
    ChangedKeyError,
    HostKeyError,
    LockedError,
    RefusedError,
    RemedyError,
    RevokedKeyError,
    UnreachableError,
)

# The first class that fits; the order is that of the sentence.
KINDS = (
    (UnreachableError, "not reachable"),
    (ChangedKeyError, "with a CHANGED key"),
    (RevokedKeyError, "with a REVOKED key"),
    (HostKeyError, "with an unknown key"),
    (LockedError, "about to change"),
    (RefusedError, "left alone"),
    (RemedyError, "not read"),
)


def unread_words(errors: Iterable[RemedyError]) -> str:
    """Return how many hosts could not be read, and why: "2 not reachable, 1 with a CHANGED key"."""
    counts = dict.fromkeys((words for _, words in KINDS), 0)
    for error in errors:
        counts[next(words for kind, words in KINDS if isinstance(error, kind))] += 1
    return ", ".join(f"{count} {words}" for words, count in counts.items() if count)
