"""Reading a single line that sets environment variables, in the syntax of the file that it stands in.

Nothing is changed here. A value that a shell computes is left out: only the host knows it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping

from remedy.edit.assignments import shell_assignments

Pairs = tuple[tuple[str, str], ...]

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_COMPUTED = frozenset("$`\\")
_SETENV = re.compile(
    rf"""setenv\s*[\s("']\s*["']?(?P<name>{_NAME})["']?[\s,]+["']?(?P<value>[^"'\s)]*)"""
)
_SET = re.compile(rf"""set\s+-\w*x\w*\s+(?P<name>{_NAME})\s+["']?(?P<value>[^"'\s;]*)""")
_EXPORT = re.compile(rf"""export\s+(?P<name>{_NAME})=(?P<value>[^"'\s;]*)""")
_QUOTED = re.compile(rf"""["'](?P<name>{_NAME})=(?P<value>[^"']*)["']""")
_ITEM = re.compile(rf"""^\s*-\s*["']?(?P<name>{_NAME})=(?P<value>[^"'\s]*)""")
_MEMBER = re.compile(rf'"(?P<name>{_NAME})"\s*:\s*"(?P<value>[^"]*)"')
_OPTION = re.compile(rf'environment="(?P<name>{_NAME})=(?P<value>[^"]*)"')
_PAM = re.compile(rf"""^\s*(?P<name>{_NAME})\s+(?:(?:DEFAULT|OVERRIDE)=(?:"[^"]*"|\S*)\s*)+""")
_PAM_VALUE = re.compile(r"""(DEFAULT|OVERRIDE)=("[^"]*"|\S*)""")
_UNIT = re.compile(r"^\s*(?:Default|Manager)?Environment\s*=(?P<rest>.*)")
_UNIT_WORD = re.compile(
    rf"""(?:^|\s)(?:"(?P<q>{_NAME}=[^"]*)"|'(?P<s>{_NAME}=[^']*)'|(?P<p>{_NAME}=\S*))"""
)
_PLAIN = re.compile(
    rf"""^\s*(?:export\s+)?(?P<name>{_NAME})=(?:"(?P<q>[^"]*)"|'(?P<s>[^']*)'|(?P<p>.*?))\s*$"""
)
_INI = re.compile(
    rf"""(?:^|[\s,=])(?P<name>{_NAME})=(?:"(?P<q>[^"]*)"|'(?P<s>[^']*)'|(?P<p>[^\s,"']*))"""
)
# By echo, printf or print(), or as a line of a here-document.
_PRINTED = re.compile(rf"""^(?:[^#]*[\s"'(])?(?P<name>{_NAME})=(?P<value>[^\s"';\\)]*)""")


class Syntax(enum.Enum):
    """What a file that sets variables is written in."""

    SHELL = "sh"
    CSH = "csh"
    FISH = "fish"
    MODULE = "modulefile"
    PLAIN = "NAME=VALUE"
    UNIT = "systemd"
    PAM_ENV = "pam_env.conf"
    PROLOG = "prolog"
    GENERATOR = "environment generator"
    LIST = "list of strings"
    JSON = "JSON"
    YAML = "YAML"
    KEYS = "authorized_keys"
    INI = "supervisord"


def variables(line: str, syntax: Syntax) -> Pairs:
    """Return the variables that a line sets, with the values as a job gets them."""
    if line.lstrip().startswith(("#", ";")) or (
        syntax is Syntax.MODULE and line.lstrip().startswith("--")
    ):
        return ()
    return tuple(pair for pair in _READERS[syntax](line) if not set(pair[1]) & _COMPUTED)


def _each(pattern: re.Pattern[str]) -> Callable[[str], Iterator[tuple[str, str]]]:
    def read(line: str) -> Iterator[tuple[str, str]]:
        for match in pattern.finditer(line):
            yield match["name"], match["value"]

    return read


def _plain(line: str) -> Iterator[tuple[str, str]]:
    if match := _PLAIN.match(line):
        yield (
            match["name"],
            next(v for v in (match["q"], match["s"], match["p"], "") if v is not None),
        )


def _ini(line: str) -> Iterator[tuple[str, str]]:
    for match in _INI.finditer(line.partition("environment")[2] if "environment" in line else line):
        yield (
            match["name"],
            next(v for v in (match["q"], match["s"], match["p"], "") if v is not None),
        )


def _unit(line: str) -> Iterator[tuple[str, str]]:
    if match := _UNIT.match(line):
        for word in _UNIT_WORD.finditer(match["rest"]):
            name, _, value = (word["q"] or word["s"] or word["p"]).partition("=")
            yield name, value


def _pam_env(line: str) -> Iterator[tuple[str, str]]:
    """Read ``NAME [DEFAULT=value] [OVERRIDE=value]``: OVERRIDE counts unless it is empty (pam_env.conf(5))."""
    match = _PAM.match(line)
    if match is None:
        return
    values = {kind: value.strip('"') for kind, value in _PAM_VALUE.findall(line)}
    value = values.get("OVERRIDE") or values.get("DEFAULT", "")
    if "@{" not in value:
        yield match["name"], value


_READERS: Mapping[Syntax, Callable[[str], Iterator[tuple[str, str]] | Pairs]] = {
    Syntax.SHELL: shell_assignments,
    Syntax.CSH: _each(_SETENV),
    Syntax.FISH: _each(_SET),
    Syntax.MODULE: _each(_SETENV),
    Syntax.PLAIN: _plain,
    Syntax.UNIT: _unit,
    Syntax.PAM_ENV: _pam_env,
    Syntax.PROLOG: _each(_EXPORT),
    Syntax.GENERATOR: _each(_PRINTED),
    Syntax.LIST: _each(_QUOTED),
    Syntax.JSON: _each(_MEMBER),
    Syntax.YAML: _each(_ITEM),
    Syntax.KEYS: _each(_OPTION),
    Syntax.INI: _ini,
}
