"""Words that every room uses: hosts, numbers and sizes as people write them, and foreign text made visible."""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")
LEAST_LEFT_OUT = 3
"""Fewer lines are shown and not counted: the line that counts them would take their place."""

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


# More names than any cluster has: a text that means more is a typing error, and would fill the memory.
MOST_NAMES = 1_000_000
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:/(\d+))?)?")


# str.isdigit takes digits that int() does not, such as a superscript, and int() takes no 5,000 digits.
_NUMBER = re.compile(r"[0-9]{1,20}")

# Typed on a host's console, of which a session cannot be had: what sshd said last.
SSHD_LOG = "journalctl -u ssh -u sshd -n 20 --no-pager"
# Typed on a host: shows which program the login shell is, then each command of bash's start-up file with its
# line; it ends where that ends a session.
TRACE_START_UP = (
    'grep "^$(id -un):" /etc/passwd; '
    """bash --norc -xc 'PS4="+\\$BASH_SOURCE:\\$LINENO "; . ~/.bashrc' </dev/null"""
)

# What stands for the inventory in the commands of a message.
_INVENTORY = re.compile(r"\bINVENTORY\b")

# What may be part of a folded name. ClusterShell reads more as operators, and expands what is in brackets.
_FOLDABLE = re.compile(r"(?!.*[0-9]{19})[A-Za-z0-9._-]{1,255}")
# A name in a sentence, or several with their numbers in brackets.
_WORD = re.compile(r"[A-Za-z0-9._-]*(?:\[[0-9,/-]{1,1000}\][A-Za-z0-9._-]*){1,4}|[A-Za-z0-9._-]+")
# Letters and symbols that show nothing: the fillers of Hangul, the empty pattern of Braille.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# Marks that show nothing (Unicode, Default_Ignorable_Code_Point); others change the letter before.
_HIDDEN_MARKS = re.compile(
    "[\u034f\u17b4\u17b5\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
MOST_MARKS = 2
"""Accents on one letter; Vietnamese has two."""


class BracketError(ValueError):
    """A text with brackets is no list of names; the message says why."""


def is_number(text: str) -> bool:
    """Say whether ``int`` may be called on text from elsewhere: up to 20 digits of ASCII, as of 64 bits."""
    return _NUMBER.fullmatch(text) is not None


def visible(text: str) -> str:
    """Return text from elsewhere as one line in which every character shows, as an escape where it must.

    That is everything that moves the cursor, hides, reverses or colours what is around it, or shows nothing:
    controls (also DEL and C1), format characters such as those of bidi and zero-width ones, line separators,
    blanks that are no space, unpaired surrogates, accents without a letter (The Unicode Standard, 4.5, 5.21).
    What is visible stays as it is, however often it passes here; so text that reads ``\\x1b`` and the control
    look alike. Where the difference counts, in plans, ``remedy.report.whole.exact`` shows it, and ``--json``.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = MOST_MARKS
    for character in text:
        kind = _kind(character)
        marks = marks + 1 if kind == "mark" else 0 if kind == "letter" else MOST_MARKS
        is_shown = marks <= MOST_MARKS if kind == "mark" else kind != "hidden"
        shown.append(character if is_shown else _escape(character))
    return "".join(shown)


def visible_lines(text: str) -> str:
    """Return a text of several lines with each of them ``visible``."""
    return "\n".join(map(visible, text.split("\n")))


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    """Return whether a character is a letter (or digit), a mark on a letter, hidden, or other."""
    if not character.isprintable() or character in _BLANK or _HIDDEN_MARKS.match(character):
        return "hidden"
    if unicodedata.category(character) in ("Mn", "Me"):
        return "mark"
    return "letter" if character.isalnum() or unicodedata.category(character) == "Mc" else "other"


def _escape(character: str) -> str:
    code = ord(character)
    if character in "\n\r\t":
        return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}[character]
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def fold(names: Iterable[str]) -> str:
    """Return host names as one folded text, such as ``gpu[001-064],login1``; what is no name comes last."""
    return _folded(tuple(dict.fromkeys(names)))


# One list stands at many changes of a plan, and ClusterShell takes 0.1 ms for ten names.
@lru_cache(maxsize=16)
def _folded(every: tuple[str, ...]) -> str:
    # Where all hosts are as they should be there is nothing to fold.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    known = [name for name in every if _FOLDABLE.fullmatch(name)]
    folded = str(NodeSet.fromlist(known, resolver=RESOLVER_NOGROUP)) if known else ""
    return ",".join([folded] * bool(known) + sorted(set(every).difference(known)))


def folded(names: Iterable[str], most: int = 200) -> str:
    """Return host names as one folded text of about so many characters at most; more hosts are counted."""
    every = list(dict.fromkeys(names))
    text = fold(every)
    shown = len(every)
    while len(text) > most and shown > 1:
        shown = shown * most // (len(text) + 1)
        text = fold(every[: max(1, shown)])
    more = len(every) - max(1, shown)
    return f"{text} and {counted(more, 'more host')}" if more > 0 else text


def expand(text: str) -> list[str]:
    """Return the names that one folded name stands for: ``gpu[01-03]`` for three.

    Raises:
        BracketError: it stands for none.
    """
    if "[" not in text and "]" not in text:
        return [text]
    if size(text) > MOST_NAMES:
        raise BracketError(f"{text} stands for more than {MOST_NAMES} names")
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise BracketError(f"{text} is no list of names: {error}") from error


def names_in(text: str, among: Collection[str]) -> list[str]:
    """Return which hosts a sentence names, one by one or folded.

    Args:
        text: the sentence.
        among: all hosts.
    """
    words = (match[0].strip(".-") for match in _WORD.finditer(text))
    names: dict[str, None] = {}
    for word in words:
        with suppress(BracketError):
            names |= dict.fromkeys(name for name in expand(word) if name in among)
    return list(names)


def size(text: str) -> int:
    """Return how many names one folded name stands for at most, without making them."""
    return math.prod(_size(bracket) for bracket in re.findall(r"\[([^\[\]]*)\]", text))


def _size(bracket: str) -> int:
    """Return how many numbers a bracket holds at most; 1 for what cannot be read, which is refused later."""
    count = 0
    for part in bracket.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return 1
        first, last, step = (
            int(number) for number in (match[1], match[2] or match[1], match[3] or 1)
        )
        count += max(0, last - first) // max(1, step) + 1
    return count


def limited(names: Iterable[str]) -> str:
    """Return host names as they are typed behind ``--limit``, quoted for a shell."""
    return shlex.quote(fold(names))


def quoted(value: object) -> str:
    """Return a path or a word of a command as it is typed, quoted for a shell where it has to be."""
    return shlex.quote(str(value))


def to_paste(text: str, inventory: str) -> str:
    """Return a next step whose commands can be typed as they are.

    Args:
        text: where it was made no inventory is known, so that ``INVENTORY`` stands for it.
        inventory: as it is typed, quoted; "" where it is not known here either.
    """
    return _INVENTORY.sub(lambda _: inventory, text) if inventory else text


def listed(names: Iterable[str], most: int = 8) -> str:
    """Return names as a list in a sentence, each once: "gpu01, gpu07 and 3 more".

    Args:
        most: how many are named; the others are counted.
    """
    known = list(dict.fromkeys(names))
    head = ", ".join(known[:most])
    return head if len(known) <= most else f"{head} and {len(known) - most} more"


def first_few(lines: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """Return the lines that are shown, and how many are left out: none, or as many as are worth a line.

    >>> first_few("abcde", 3), first_few("abcdef", 3)
    (('abcde', 0), ('abc', 3))
    """
    rest = len(lines) - most
    return (lines, 0) if rest < LEAST_LEFT_OUT else (lines[:most], rest)


# The end of what was cut before, as far as a further cut leaves it.
_CUT = re.compile(r"\.{2,}(?: (?:\((?:\d[\w ]*)?)?)?\Z")


def clipped(text: str, most: int) -> str:
    """Return so many characters of a text and how many more there are, or all where that is no longer."""
    head = _CUT.sub("", text[:most])
    short = f"{head}... ({counted(len(text) - len(head), 'more character')})"
    return text if len(text) <= len(short) else short


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 host", "2 hosts", "2 addresses"."""
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{number} {noun}{ending * (number != 1)}"


def amount(size: int) -> str:
    """Return a number of bytes in the largest unit that fits: "8.0 MiB"."""
    for unit, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return counted(size, "byte")
