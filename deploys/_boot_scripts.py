"""What scripts that run at boot write to the kernel's settings, and whether that is sure. Not a remedy.

A line is read as sh(1) reads it: what only prints a command, or has it in a comment, writes nothing. What
depends on something (a branch, ``&&``, a function, an earlier exit) may be carried out or not. The probe tells
of such scripts the words on which their lines depend, and nothing else of these lines
(``remedy.probe.searched.OUTLINE_PATTERN``).

Sources: sh(1), sysctl(8); interfaces(5), crontab(5), systemd.service(5), NetworkManager-dispatcher(8).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, groupby, pairwise
from typing import NamedTuple

from remedy.probe import Mention

SCRIPTS = (
    *("/etc/network/if-", "/etc/NetworkManager/dispatcher.d/", "/etc/networkd-dispatcher/"),
    *(
        "/etc/rc.local",
        "/etc/rc.d/",
        "/etc/init.d/",
        "/etc/dhcp/",
        "/etc/ufw/before.init",
        "/etc/ufw/after.init",
    ),
)
"""Scripts; other files that run something at boot have a command on a line."""

NOT_AT_BOOT = ("if-down.d/", "if-post-down.d/", "/pre-down.d/", "/off.d/")
_DIRECTIVE = re.compile(
    r"(?:ExecStart(?:Pre|Post)?\s*=\s*[-@:+!|]*|(?:pre-|post-)?up\s+|@reboot\s+(?:\S+\s+)?)(?=\S)"
)
_UNITS = ("/etc/systemd/system/", "/usr/local/lib/systemd/system/")
_OF_ONE_USER = "/var/spool/cron/"
_REBOOT = re.compile(r"@reboot\s+")
_OPERATORS = frozenset("();<>|&")
_KEYWORDS = frozenset(
    ("if", "elif", "while", "until", "for", "case", "then", "else", "do", "{", "select")
)
_BEFORE = frozenset(("exec", "command", "nohup", "time", "sudo", "busybox", "-"))
_SHELLS = frozenset(("sh", "bash", "dash", "ash"))
_PRINTS = frozenset(
    ("echo", "printf", "logger", ":", "true", "false", "test", "[", "[[", "grep", "wall")
)
_SETTING = re.compile(r"([\w./*${}-]+)\s?=\s?(.+)", re.DOTALL)
_ANYWHERE = re.compile(r"\bsysctl\s(?:.*\s)?([\w./*-]+)\s?=\s?[\"']?([^\s\"';&|]+)")
_OPTION = re.compile(r"-\w+\Z")
_TARGET = re.compile(r"/(?:proc/sys|sys)/")
_VARIABLE = re.compile(r"\$\{[^}]*\}|\$\w+|\$")
_END = frozenset(("exit", "return", "exec"))
_CLOSING = frozenset(("fi", "esac", "done", "}"))


class Write(NamedTuple):
    """A path that is written, and what (None where that is not known); whether it is sure to be carried out."""

    path: str
    value: str | None
    sure: bool = True


class Outline:
    """On what the lines of scripts depend.

    Args:
        mentions: lines of files, those of the outlines among them.
    """

    def __init__(self, mentions: Sequence[Mention]) -> None:
        words = sorted(
            (m for m in mentions if m.path.startswith(SCRIPTS) and _is_word(m.text)),
            key=lambda m: (m.path, m.line),
        )
        self._by_path: Mapping[str, list[Mention]] = {
            path: list(group) for path, group in groupby(words, lambda m: m.path)
        }

    def runs(self, mention: Mention) -> bool | None:
        """Return whether a script comes to a line; None where that depends on something."""
        depth, depends = 0, mention.text[:1].isspace()
        for word in self._by_path.get(mention.path, ()):
            if word.line >= mention.line:
                break
            text = word.text.strip(" \t;")
            name = text.split()[0] if text else ""
            if text in _CLOSING:
                depth = max(0, depth - 1)
            elif name in _END and not depth and not word.text[:1].isspace():
                return None if depends else False
            elif name in _END or text.startswith(("&&", "||", "<<")):
                depends = True
            elif not text.endswith(
                ")"
            ):  # the name of a function, whose body comes with the next word
                depth += 1
        return None if depends or depth else True


def _is_word(text: str) -> bool:
    return bool(_OUTLINE.fullmatch(text))


_OUTLINE = re.compile(
    r"\s*(if|case|for|while|until|select|fi|esac|done|exit|return|function)\W?|\s*exec\s+[^\s<>&\d]|\s*[{}(]"
    r"|\s*[A-Za-z_][\w-]*\s*\(\)\s*\{?|;\s*(fi|done|esac|\})\W?|(&&|\|\|)\s*(exit|return|\{)\W?|<<"
)


def writes_of(mention: Mention, outline: Outline) -> Iterator[Write]:
    """Yield what a line of a file that runs something at boot writes."""
    path, text = mention.path, mention.text.strip()
    if any(part in path for part in NOT_AT_BOOT):
        return
    runs: bool | None = True
    if path.startswith(SCRIPTS):
        runs = outline.runs(mention)
    elif path.startswith(_OF_ONE_USER):  # there a line of cron has no name of a user
        if (match := _REBOOT.match(text)) is None:
            return
        text = text[match.end() :]
    elif directive := _DIRECTIVE.match(text):
        text = text[directive.end() :]
        runs = None if path.startswith(_UNITS) else True  # whether the unit is started is not known
    else:
        return
    if runs is not False:
        for write in _of_text(text):
            yield write if runs else write._replace(sure=False)


def _of_text(text: str) -> Iterator[Write]:
    """Yield what a line of shell writes."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quote that is closed on another line
        yield from _anywhere(text)
        return
    for command, depends in _commands(words):
        for write in _of_command(command):
            yield write._replace(sure=write.sure and not depends)


def _commands(words: Sequence[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield the commands of a line, redirections among their words, and whether each depends on something."""
    branches = bool(_KEYWORDS & set(words))
    command: list[str] = []
    depends, opened = branches, 0
    for word in (*words, ";"):
        if not _OPERATORS.issuperset(word) or word[0] in "<>":
            command.append(word)
            continue
        yield command, depends
        command = []
        opened += word.count("(") - word.count(")")
        # A parenthesis that was not opened is that of a pattern of case.
        depends = branches or opened < 0 or word in ("&&", "||") or (depends and word != ";")


def _of_command(command: Sequence[str]) -> Iterator[Write]:
    """Yield what one command writes."""
    words = list(dropwhile(_goes_before, command))
    name = words[0].rpartition("/")[2] if words else ""
    target = next((b for a, b in pairwise(words) if a in (">", ">>")), "")
    if name in _SHELLS and "-c" in words[:-1]:
        yield from _of_text(words[words.index("-c") + 1])
    elif _TARGET.match(target):
        text = " ".join(w for w in words[1 : words.index(target) - 1] if not _OPTION.match(w))
        yield _write(target, text if name in ("echo", "printf") else "$")
    elif name == "sysctl":
        yield from _of_sysctl(words[1:])
    elif name not in _PRINTS:
        if name in ("ip", "ifconfig"):
            yield from _of_link(words[1:])
        yield from _anywhere(" ".join(words))


def _of_link(words: Sequence[str]) -> Iterator[Write]:
    """Yield the MTU that `ip link set DEVICE mtu N` or `ifconfig DEVICE mtu N` gives an interface."""
    pairs = dict(pairwise(words))
    device = pairs.get("dev") or pairs.get("set") or (words[0] if words else "")
    if "mtu" in pairs and "$" not in device and ("set" in words or words[1:2] == ["mtu"]):
        yield _write(f"/sys/class/net/{device}/mtu", pairs["mtu"])


def _goes_before(word: str) -> bool:
    return word in _KEYWORDS or word in _BEFORE or "=" in word


def _anywhere(text: str) -> Iterator[Write]:
    """Yield what looks like settings in a text that is not sure to be carried out here."""
    for key, value in _ANYWHERE.findall(text):
        yield _write(as_path(key), value)._replace(sure=False)


def _of_sysctl(words: Sequence[str]) -> Iterator[Write]:
    """Yield what the arguments of sysctl(8) set: KEY=VALUE, also with blanks around the sign."""
    if "--dry-run" in words:
        return
    joined: list[str] = []
    for word in words:
        if word.startswith("=") or (joined and joined[-1].endswith("=")):
            joined[-1:] = [f"{joined[-1] if joined else ''}{word}"]
        elif not word.startswith("-"):
            joined.append(word)
    for word in joined:
        if match := _SETTING.fullmatch(word.strip()):
            yield _write(as_path(match[1]), match[2])


def _write(path: str, value: str) -> Write:
    """Return a write; what has a variable in it is known only to the shell that runs it."""
    pattern = _VARIABLE.sub("*", path)
    unknown = "$" in value or "`" in value
    return Write(pattern, None if unknown else value, sure=not unknown and pattern == path)


def as_path(key: str) -> str:
    """Return the path of a kernel setting."""
    if "/" not in key.split(".")[0]:
        key = key.replace("/", "\0").replace(".", "/").replace("\0", ".")
    return f"/proc/sys/{key}"
