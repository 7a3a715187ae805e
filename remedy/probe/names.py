"""What names resolve to on the host, by its own resolver, for the user who runs the jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from pydantic import SkipValidation

from remedy.probe.frames import NoAnswerError, Sections, as_text
from remedy.probe.request import mark
from remedy.probe.resolved import Answers, Resolved
from remedy.values import Fact, Record, Unknown, once_alike

# getent says each address three times, once a type of socket, and the canonical name with the first.
_LINE = re.compile(
    r"^(?:(?P<address>\S+) +STREAM[ \t]*(?P<title>\S*)|whole (?P<first>\S+) (?P<last>\S+)|asked (?P<user>\S*))",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"#[^\n]*")
_LONGEST_USER = 64
NO_MARK = -1
MOST_ANSWERS = 1_000
"""Addresses of one name; those of a public service are some dozen."""

NOT_ASKED = Unknown(reason="the host's own name could not be asked in time")


class Names(Record):
    """How the host resolves names, asked of the host's own resolver (``getent -A ahosts``).

    That is what gloo, c10d and NCCL get, in their order: getaddrinfo with AF_UNSPEC and without AI_ADDRCONFIG,
    sorted by RFC 6724 and gai.conf(5). gloo takes the first address of the own name that it can bind (gloo
    70dc360, transport/tcp/device.cc; PyTorch 2.13, ProcessGroupGloo.cpp), c10d tries all of a peer's one after
    the other (PyTorch 2.13, c10d/socket.cpp: AI_V4MAPPED | AI_ALL | AI_NUMERICSERV), NCCL takes the first of
    NCCL_COMM_ID's host and else no name at all (NCCL 2.30.7, src/misc/socket.cc). An older getent has no -A,
    and shows no IPv6 address where the host has none beyond ::1.

    ``peers`` maps each name that was asked for to its addresses of both families in answer order, or to () when
    the name does not resolve; a name that could not be asked in time is missing. ``local`` are the addresses of
    the host's own (transient) name, () when it does not resolve. ``user`` is who asked, "" for the user of the
    ssh connection. ``order`` is the ``hosts`` line of nsswitch.conf(5), ``servers``, ``search`` and ``options``
    are resolv.conf(5)'s.
    """

    local: Fact[tuple[str, ...]]
    # One table for all hosts that answer alike, which a validation would copy for each.
    peers: SkipValidation[Mapping[str, tuple[str, ...]]]
    user: str = ""
    order: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    resolver_options: tuple[str, ...] = ()


def parse_names(
    sections: Sections, names: Sequence[str], hosts: bytes, nsswitch: str, resolv: str
) -> Names:
    """Read section ``names``: what getent printed, where the answer to a name comes before its mark.

    What the hosts file says of a name in one address alone was not printed again.

    Args:
        sections: of the probe.
        names: the names in the order of their marks, from 1.
        hosts: the hosts file; b"" where it could not be read.
        nsswitch: text of nsswitch.conf.
        resolv: text of resolv.conf.

    Raises:
        NoAnswerError: there is no getent, or a mark came twice, as when a hosts file names 0.0.0.N.
    """
    section = sections.by_name.get("names")
    if section is None or section.status not in ("ok", "timeout"):
        sections.body("names")  # raises with the reason
        raise NoAnswerError("getent could not be asked")
    settings = [line.split() for line in resolv.splitlines()]
    answers, spans, user = _answers(as_text(section.body), names)
    return Names(
        local=answers.pop("", NOT_ASKED),
        peers=_with_listed(answers, names, spans, hosts),
        user=user,
        order=hosts_order(nsswitch),
        servers=tuple(
            words[1] for words in settings if len(words) > 1 and words[0] == "nameserver"
        ),
        search=_words(settings, "search", "domain"),
        resolver_options=_words(settings, "options"),
    )


def _answers(
    text: str, names: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], tuple[tuple[int, int], ...], str]:
    """Return the answers by name, with that to the own name under "", the spans of names whose other answers
    are what the hosts file says, and who asked.
    """
    answers: dict[str, tuple[str, ...]] = {}
    spans: list[tuple[int, int]] = []
    pending: list[str] = []
    user = ""
    positions, marks = _positions(len(names)), _mark_lines(len(names))
    for row in text.split("\n"):
        # Of a host that knows nobody by name there is one mark after the other.
        at = marks.get(row, NO_MARK)
        if at == NO_MARK and (line := _LINE.match(row)):
            if line["user"] is not None:
                user = line["user"][:_LONGEST_USER]
            elif line["first"] is not None:
                spans.append(_span(line, positions))
            else:
                at = _position(line, positions)
                pending += [] if at != NO_MARK else [line["address"].partition("%")[0]]
        if at != NO_MARK:
            name = names[at - 1] if at else ""
            if name in answers:
                raise NoAnswerError(f"two answers to the name {name or 'of the host'}")
            answers[name] = _bounded(name, pending) if pending else ()
            pending = []
    return answers, tuple(spans), user


def _position(line: re.Match[str], positions: Mapping[str, int]) -> int:
    """Return the position of the name whose answers a line ends; ``NO_MARK`` of a line with an answer."""
    address = line["address"]
    if not (address == line["title"] and address.startswith("0.")):
        return NO_MARK
    if address not in positions:
        raise NoAnswerError(f"an answer that belongs to no name: {address}")
    return positions[address]


def _span(line: re.Match[str], positions: Mapping[str, int]) -> tuple[int, int]:
    first, last = (positions.get(line[word], -1) for word in ("first", "last"))
    if not 0 < first <= last:
        raise NoAnswerError("an answer to names that were not asked for")
    return first - 1, last


def _bounded(name: str, addresses: Sequence[str]) -> tuple[str, ...]:
    distinct = tuple(dict.fromkeys(addresses))
    if len(distinct) > MOST_ANSWERS:
        raise NoAnswerError(f"{name or 'its own name'} has more than {MOST_ANSWERS} addresses")
    return distinct


@lru_cache(maxsize=4)
def _mark_lines(names: int) -> Mapping[str, int]:
    """Return the position of each mark by the line that getent prints of it."""
    return {f"{mark(at):<15} STREAM {mark(at)}": at for at in range(names + 1)}


@lru_cache(maxsize=4)
def _positions(names: int) -> Mapping[str, int]:
    """Return the position of each mark; that of the own name is 0."""
    return {mark(position): position for position in range(names + 1)}


def _with_listed(
    answers: Mapping[str, tuple[str, ...]],
    names: Sequence[str],
    spans: tuple[tuple[int, int], ...],
    hosts: bytes,
) -> Mapping[str, tuple[str, ...]]:
    """Return the answers with those that the hosts file gives to the other names of the spans."""
    table = Answers()
    if spans:
        table, lacking = _tables(tuple(names))(spans, _without_comments(hosts))
        if not lacking <= answers.keys():
            raise NoAnswerError("the hosts file changed while it was read")
    known = {name: addresses for name, addresses in answers.items() if addresses}
    if 2 * (len(answers) - len(known)) > max(len(names), len(table)):
        known |= {name: table[name] for name in table if name not in answers}
        if len(answers.keys() | known.keys()) == len(names):
            return Resolved(_silent(tuple(names)), known)
    return Resolved(table, answers) if table and answers else table or answers


@lru_cache(maxsize=4)
def _silent(names: tuple[str, ...]) -> Answers:
    """Return the answers of a host that knows none of the names."""
    return Answers(dict.fromkeys(names, ()))


@lru_cache(maxsize=16)
def _without_comments(hosts: bytes) -> bytes:
    return _COMMENT.sub(b"", hosts)


# Of a fleet that is right all files say the same, but for comments; all hosts are asked for the same names.
@once_alike
def _tables(names: tuple[str, ...]) -> Callable[..., tuple[Answers, frozenset[str]]]:
    """Return what reads the hosts files of hosts that were asked for these names."""
    return lru_cache(maxsize=16)(partial(_table, names))


def _table(
    names: tuple[str, ...], spans: tuple[tuple[int, int], ...], hosts: bytes
) -> tuple[Answers, frozenset[str]]:
    """Return the one address of each name of the spans in a hosts file, and which names have none or more."""
    listed = _listed(hosts)
    asked = [name for first, last in spans for name in names[first:last]]
    table = Answers(
        (name, tuple(addresses))
        for name in asked
        if len(addresses := listed.get(name.lower(), frozenset())) == 1
    )
    return table, frozenset(name for name in asked if name not in table)


def _listed(hosts: bytes) -> Mapping[str, frozenset[str]]:
    """Return every name of a hosts file with its addresses, as ``host/names.sh`` reads them."""
    listed: dict[str, set[str]] = {}
    for line in hosts.split(b"\n"):
        words = as_text(line.partition(b"#")[0]).split()
        for word in words[1:]:
            listed.setdefault(word.lower(), set()).add(words[0])
    return {name: frozenset(addresses) for name, addresses in listed.items()}


def hosts_order(nsswitch: str) -> tuple[str, ...]:
    """Return the words of the ``hosts`` line of nsswitch.conf(5), () where there is none.

    Of several lines the last counts (glibc 2.34 and later, nss/nss_database.c).
    """
    order: tuple[str, ...] = ()
    for line in nsswitch.splitlines():
        name, colon, services = line.partition("#")[0].partition(":")
        if colon and name.strip() == "hosts":
            order = tuple(services.replace("[", " [").replace("]", "] ").split())
    return order


def _words(settings: Sequence[Sequence[str]], *keys: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(w for words in settings if words[:1] and words[0] in keys for w in words[1:])
    )
