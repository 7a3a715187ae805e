"""What a change touches: whether it can keep a login out, or cut the connections that a host has.

The remedy that makes a change may say that it can (``guarded=True``), and has no say that it cannot: that
follows from the files that are written and from the text of the command. A command whose programs are not all
known to leave connections alone is taken to cut them. What errs here errs towards a guard too many.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from remedy.plan.change import Change, CommandAction, FileAction
from remedy.plan.lockout_words import (
    ALL,
    FILES,
    HARMLESS,
    LOCAL,
    LOGIN_RUNS,
    MANAGERS,
    PROGRAMS,
    STARTUP,
    UNITS,
    WRITING,
    words_of,
)

UNKNOWN_PROGRAM = "a program whose effects are not known"
SSHD_READS_AGAIN = "sshd, which reads its files again"

# What sshd itself reads once, at its start; the keys of users it reads at each login.
_SSHD_FILES = re.compile(r"/etc/(?:ssh/(?!ssh_config|ssh_known_hosts)|crypto-policies/)")
_PATH = re.compile(r"(?<![\w.$}/*-])/[^\s'\"`;&|()<>$\\,:]*")
_SSHD = re.compile(r"\bsshd\b")
_ROOT = re.compile(r"(?<!\S)/(?=[\s;&|)]|$)")
_WORD = re.compile(r"[A-Za-z_][\w.@-]*")
_PROGRAM = re.compile(r"[A-Za-z_][\w-]*")
_GLOB = re.compile(r"[*?\[{]")
_COMMENT = re.compile(r"^\s*#.*$", re.M)
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(\)")
_INNER = re.compile(r"\$\((?!\()|`")
_STARTS = re.compile(r"\s-(?:exec|ok)|\bsystem\s*\(")  # find and awk, which run what they are given
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NETWORK_KEY = re.compile(rb"^\s*-?\s*net[./]", re.M)
_KEYWORDS = words_of("if then else elif fi while until do done case esac in for ! { } [[ ]] time")
_BEFORE = frozenset(("command", "exec", "builtin", "nohup"))
_ENDS = frozenset(";&|()\n")


def touches(action: FileAction | CommandAction, *contents: bytes) -> str:
    """Return what a change touches by which it can lock somebody out, as a noun; "" for nothing of that kind.

    Args:
        action: what is done.
        contents: of a file before and after, where they are known.
    """
    if isinstance(action, CommandAction):
        return next(filter(None, map(_of_text, (action.do, action.undo))), "")
    kinds = (_of_path(path, programs=True) for path in (action.path, action.real_path))
    kind = next(filter(None, kinds), "")
    if kind == "kernel settings":
        return "network" if not contents or any(map(_NETWORK_KEY.search, contents)) else ""
    return kind


def guarded(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes, each guarded where it touches what can lock somebody out, and can be taken back.

    Plans of files and of earlier runs may have been made by whoever did not see to that.
    """
    return tuple(
        change.model_copy(update={"guarded": True})
        if change.reversible and not change.guarded and touches(change.action)
        else change
        for change in changes
    )


def guarded_for(change: Change) -> str:
    """Return what a guarded change ``touches``; "" where its remedy alone says that it can cut connections.

    Of a program whose name its command looks up, what is named there says of what it is.
    """
    kind, action = touches(change.action) if change.guarded else "", change.action
    if kind != UNKNOWN_PROGRAM or not isinstance(action, CommandAction):
        return kind
    words = _PROGRAM.findall(_COMMENT.sub("", action.do))
    return next(filter(None, map(PROGRAMS.get, words)), kind)


def is_known(kind: str) -> bool:
    """Say whether a change is known to touch what it names, and not only taken to."""
    return kind not in ("", UNKNOWN_PROGRAM)


def sshd_reads(action: FileAction | CommandAction) -> bool:
    """Say whether a change is of files that sshd reads at its start: a new login alone proves none of them."""
    if isinstance(action, FileAction):
        return any(map(_SSHD_FILES.match, (action.path, action.real_path)))
    return any(map(_SSHD_FILES.search, (action.do, action.undo)))


@lru_cache(maxsize=4096)
def _of_path(path: str, *, programs: bool) -> str:
    """Return what a file is of; ``programs``: whether the folders of programs count."""
    for kind, places in (ALL if programs else FILES).items():
        if any(path == place.rstrip("/") or path.startswith(place) for place in places):
            return kind
    if path.rpartition("/")[2] in STARTUP or "/.ssh/" in f"{path}/":
        return "login"
    if path.startswith(("/etc/systemd/system/", "/run/systemd/system/")):
        return _of_units(path)
    folder, _, name = path.rpartition("/")
    if (
        programs
        and folder in LOCAL
        and (name in HARMLESS or name in PROGRAMS or name in LOGIN_RUNS)
    ):
        return "programs"
    return ""


@lru_cache(maxsize=4096)
def _of_text(text: str) -> str:
    """Return what the text of a command touches."""
    text = _COMMENT.sub("", text)
    names = tuple(_programs(text))
    writes = not WRITING.isdisjoint(names)
    paths = (_of_written(path, programs=writes) for path in _PATH.findall(text))
    kind = next(filter(None, paths), "") or next(filter(None, map(PROGRAMS.get, names)), "")
    if not kind and (_SSHD.search(text) or not MANAGERS.isdisjoint(names)):
        kind = _of_units(text)
    if kind or (writes and _ROOT.search(text)):
        return kind or "login"
    own = HARMLESS.union(_FUNCTION.findall(text))
    return "" if own.issuperset(names) and not _STARTS.search(text) else UNKNOWN_PROGRAM


def _of_written(path: str, *, programs: bool) -> str:
    """Return what a path in a command is of: it may be a folder above, or have patterns in it."""
    if kind := _of_path(path, programs=programs):
        return kind
    stem = _GLOB.split(path)[0]
    above = stem if stem != path else f"{path.rstrip('/')}/"
    if len(above) < 2 or above in ("/proc/", "/sys/"):  # what follows is a process, or a device
        return ""
    for kind, places in (ALL if programs else FILES).items():
        if any(place.startswith(above) for place in places):
            return kind
    return ""


def _of_units(text: str) -> str:
    """Return what the units that a text names are of, wherever they stand in it."""
    names = (word.partition("@")[0].partition(".")[0].rstrip("-") for word in _WORD.findall(text))
    return next(filter(None, map(UNITS.get, names)), "")


def _programs(text: str) -> Iterator[str]:
    """Yield the first word of each command of a text; what cannot be taken apart is a word that no list has."""
    for part in (text, *_INNER.split(text)[1:]):
        lexer = shlex.shlex(part, posix=True, punctuation_chars=";&|()<>\n")
        lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
        try:
            words = list(lexer)
        except ValueError:
            # A part that begins within quotes ends outside of them; the whole has to be sound.
            words = list(_first_word(part))
            if part is text:
                yield UNKNOWN_PROGRAM
        yield from _commands(words)


def _first_word(part: str) -> Iterator[str]:
    """Yield the first word of a part that has no sound quotes."""
    match = re.match(r"\s*([^\s'\"`;&|()<>]+)", part)
    if match is not None:
        yield match[1]


def _commands(words: list[str]) -> Iterator[str]:
    """Yield the words at which commands begin."""
    begins, target = True, False
    for word in words:
        if word and _ENDS.issuperset(word):
            begins, target = True, False
        elif word and set(word) <= set("<>&"):
            target = True
        elif target or (begins and (word in _KEYWORDS or _ASSIGNMENT.match(word))):
            target = False
        elif begins and word in _BEFORE:
            continue
        elif begins:
            begins = False
            if not word.startswith("-"):  # command -v asks where a program is
                yield word.rpartition("/")[2]
