"""What a gateway is asked about the host keys of the hosts behind it, and how its answer is read. Pure.

The gateway's own ssh decides, by its own ssh_config and files, as it does for every script. A key is asked for
by an ssh that is refused its login: that it came so far means that the host has proved to have the key, which
``ssh-keyscan`` does not say.
"""

from __future__ import annotations

import base64
import binascii
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from remedy.answers import read_answer
from remedy.trust import KeyState, ShownKey
from remedy.trust.judge import ALGORITHMS

SECONDS = 30
"""In which one ssh of a gateway is over."""
AT_ONCE = 16
"""Hosts that a gateway asks at once."""
MOST_SAID = 2_000
"""Bytes of what ssh printed about one host; lines of keys are shorter."""

# Of each family a server shows one key, whichever signature of the family is asked for.
FAMILIES = tuple(",".join(ALGORITHMS[part]) for part in (slice(1), slice(1, 4), slice(4, 6)))
_PLAIN = (
    *(
        "-oBatchMode=yes",
        "-oLogLevel=ERROR",
        "-oPreferredAuthentications=none",
        "-oForwardAgent=no",
    ),
    *("-oControlMaster=no", "-oControlPath=none", "-oClearAllForwardings=yes"),
    "-oPermitLocalCommand=no",
)
_FRESH = (
    *("-oStrictHostKeyChecking=accept-new", '-oUserKnownHostsFile="$keys"'),
    *("-oGlobalKnownHostsFile=/dev/null", "-oHashKnownHosts=no", "-oCheckHostIP=no"),
    "-oUpdateHostKeys=no",
)
_REFUSED = "Permission denied"
_UNKNOWN = "Host key verification failed"
_CHANGED = "IDENTIFICATION HAS CHANGED"
_REVOKED = re.compile(r"marked as revoked|REVOKED HOST KEY|revoked by file", re.IGNORECASE)
# What ssh calls a host in a file of known hosts; it goes into a script, and names no other host.
_PLACE = re.compile(r"[A-Za-z0-9._-]{1,255}|\[[A-Za-z0-9._:-]{1,255}\]:[0-9]{1,5}")
_NUMBER = re.compile(r"[0-9]{1,6}")
_LINE = re.compile(rf"({_PLACE.pattern}) ([a-z0-9@.-]{{1,64}}) ([A-Za-z0-9+/]{{1,4096}}={{0,2}})")

_ASK = """\
ask() {{
  LC_ALL=C timeout -k 2 {seconds} ssh {plain} -oConnectTimeout={connect} {login} "$@" true </dev/null 2>&1
}}
say() {{
  printf '%s %s %s %s %s\\n' {nonce} "$1" "$2" "$3" "$(printf %s "$4" | head -c {most} | base64 | tr -d '\\n')"
}}
"""
_READ = """\
look() {{
  said=$(ask -oStrictHostKeyChecking=yes -- "$2"); code=$?
  say "$1" state "$code" "$said"
  case $said in *{unknown}*) ;; *) return ;; esac
  keys=$folder/$1.keys
  for family in {families}; do
    rm -f "$keys"
    said=$(ask {fresh} -oHostKeyAlgorithms="$family" -- "$2"); code=$?
    case $code$said in 0* | *{refused}*) [ ! -e "$keys" ] || say "$1" key 0 "$(cat "$keys")" ;; esac
  done
}}
"""
_RECORD = """\
put() {{
  file=$(ssh {login} -G -- "$2" | sed -n 's/^userknownhostsfile //p'); file=${{file%% *}}
  case $file in '~/'*) file=$HOME/${{file#*/}} ;; esac
  case $file in
    /*) ;;
    *) say "$1" state 1 "its ssh keeps no file of known hosts: $file"; return ;;
  esac
  if [ -n "$4" ] && [ -e "$file" ] && ! said=$(ssh-keygen -R "$4" -f "$file" 2>&1); then
    say "$1" state 1 "$file: $said"
    return
  fi
  if ! said=$(mkdir -p -m 700 "${{file%/*}}" 2>&1) || ! said=$(add "$3" 2>&1 >>"$file"); then
    say "$1" state 1 "$file: $said"
    return
  fi
  say "$1" file 0 "$file"
}}
add() {{
  [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || echo
  printf %s "$1"
}}
look() {{
  said=$(ask -oStrictHostKeyChecking=yes -- "$2"); code=$?
  say "$1" state "$code" "$said"
}}
"""
_ALL = """\
umask 077
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
{functions}
{calls}
wait
cat "$folder"/*.out
printf '%s over\\n' {nonce}
"""


@dataclass(frozen=True)
class Login:
    """How a gateway's ssh reaches hosts.

    Args:
        user: of the hosts, "" for whoever its ssh takes.
        port: of the hosts.
        connect: seconds for a connection.
    """

    user: str
    port: int
    connect: float

    @property
    def words(self) -> str:
        """As options of ssh."""
        user = ["-l", self.user] if self.user else []
        return shlex.join([*user, "-p", str(self.port)])


@dataclass(frozen=True)
class Seen:
    """What a gateway's ssh says of one host.

    Args:
        state: how the host's key compares with what the gateway knows.
        message: what ssh printed, where the host was not reached.
        lines: of known_hosts, where the host is not known, a line a key: the place and the key.
        file: where lines were recorded.
    """

    state: KeyState
    message: str = ""
    lines: tuple[tuple[str, ShownKey], ...] = ()
    file: str = ""


@dataclass(frozen=True)
class KeyLines:
    """Lines that are to be recorded about one host.

    Args:
        address: of the host.
        lines: of known_hosts.
        replaces: the place whose lines go before that; "" for none.
    """

    address: str
    lines: Sequence[tuple[str, ShownKey]] = field(default_factory=tuple)
    replaces: str = ""


def render_read(addresses: Iterable[str], login: Login, nonce: str) -> str:
    """Return the script that has a gateway say how the keys of hosts compare, and which they are."""
    functions = _READ.format(
        unknown=shlex.quote(_UNKNOWN),
        refused=shlex.quote(_REFUSED),
        families=" ".join(FAMILIES),
        fresh=" ".join(_FRESH),
    )
    return _script(functions, (), addresses, login, nonce)


def render_record(entries: Iterable[KeyLines], login: Login, nonce: str) -> str:
    """Return the script that has a gateway record keys, and say what its ssh makes of the hosts then."""
    every = list(entries)
    # One after the other: they write one file.
    puts = [
        (
            *("put", str(number), entry.address),
            "".join(f"{place} {key.line}\n" for place, key in entry.lines),
            entry.replaces,
        )
        for number, entry in enumerate(every, 1)
    ]
    functions = _RECORD.format(login=login.words)
    return _script(functions, puts, [entry.address for entry in every], login, nonce)


def _script(
    functions: str,
    puts: Iterable[Sequence[str]],
    addresses: Iterable[str],
    login: Login,
    nonce: str,
) -> str:
    ask = _ASK.format(
        seconds=SECONDS,
        plain=" ".join(_PLAIN),
        connect=f"{login.connect:.0f}",
        login=login.words,
        nonce=nonce,
        most=MOST_SAID,
    )
    lines = [f'{shlex.join(words)} >"$folder/{words[1]}.out"' for words in puts]
    for number, address in enumerate(addresses, 1):
        look = shlex.join(["look", str(number), address])
        lines.append(f'{look} >>"$folder/{number}.out" &')
        lines += ["wait"] if number % AT_ONCE == 0 else []
    return _ALL.format(functions=f"{ask}{functions}", calls="\n".join(lines), nonce=nonce)


def parse(text: str, addresses: Sequence[str], nonce: str) -> Mapping[str, Seen] | None:
    """Return what a gateway said, by the address of each host; None where its script did not come to its end.

    Args:
        text: what it printed.
        addresses: of the hosts, in the order in which they were asked about.
        nonce: what its lines begin with.
    """
    rows = read_answer(text, nonce).words
    if ("over",) not in rows:
        return None
    states: dict[int, tuple[KeyState, str]] = {}
    keys: dict[int, list[tuple[str, ShownKey]]] = {}
    files: dict[int, str] = {}
    for row in rows:
        if len(row) != 4 or not _NUMBER.fullmatch(row[0]):
            continue
        number, kind, code = int(row[0]), row[1], row[2]
        answer = _decoded(row[3])
        if kind == "state":
            states.setdefault(number, (_state(code, answer), answer))
        elif kind == "file":
            files.setdefault(number, answer)
        elif kind == "key":
            keys.setdefault(number, []).extend(_lines(answer))
    return {
        address: Seen(*states[number], tuple(keys.get(number, ())), files.get(number, ""))
        for number, address in enumerate(addresses, 1)
        if number in states
    }


def _state(code: str, answer: str) -> KeyState:
    """Return how ssh decided, by its exit code and what it printed."""
    if _REVOKED.search(answer):
        return KeyState.REVOKED
    if _CHANGED in answer:
        return KeyState.CHANGED
    if _UNKNOWN in answer:
        return KeyState.NEW
    return KeyState.KNOWN if code == "0" or _REFUSED in answer else KeyState.SILENT


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "backslashreplace")
    except binascii.Error:
        return ""


def _lines(answer: str) -> Iterator[tuple[str, ShownKey]]:
    """Yield the plain keys of a file of known hosts, whose type is what it says."""
    for line in answer.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        key = ShownKey(base64.b64decode(match[3] + "=" * (-len(match[3]) % 4)))
        if _kind(key) == match[2] and not key.is_certificate:
            yield match[1], key


def _kind(key: ShownKey) -> str:
    try:
        return key.kind
    except (ValueError, IndexError):
        return ""
