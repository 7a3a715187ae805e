"""What names resolve to on the host, by its own resolver."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from remedy.probe.frames import NoAnswerError, Sections, as_text
from remedy.probe.request import mark
from remedy.values import Fact, Record, Unknown

# getent says each address three times, once a type of socket, and the canonical name with the first.
_ANSWER = re.compile(r"^(\S+) +STREAM[ \t]*(\S*)", re.MULTILINE)


NOT_ASKED = Unknown(reason="the host's own name could not be asked in time")


class Names(Record):
    """How the host resolves names, asked of the host's own resolver (getent ahostsv4).

    ``peers`` maps each name that was asked for to its IPv4 addresses in answer order, or to () when
    the name does not resolve; a name that could not be asked in time is missing. ``local`` are the addresses
    of the host's own (transient) name, () when it does not resolve.
    ``order`` is the ``hosts`` line of nsswitch.conf(5), ``servers`` and ``search`` are resolv.conf(5)'s.
    """

    local: Fact[tuple[str, ...]]
    peers: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def parse_names(sections: Sections, names: Sequence[str], nsswitch: str, resolv: str) -> Names:
    """Read section ``names``: what getent printed, where the answer to a name comes before its mark.

    Args:
        sections: of the probe.
        names: the names in the order of their marks, from 1.
        nsswitch: text of nsswitch.conf.
        resolv: text of resolv.conf.

    Raises:
        NoAnswerError: there is no getent, or a mark came twice, as when a hosts file names 0.0.0.N.
    """
    section = sections.by_name.get("names")
    if section is None or section.status not in ("ok", "timeout"):
        sections.body("names")  # raises with the reason
        raise NoAnswerError("getent could not be asked")
    answers: dict[str, tuple[str, ...]] = {}
    known = {mark(position): name for position, name in enumerate(("", *names))}
    pending: list[str] = []
    for address, title in _ANSWER.findall(as_text(section.body)):
        if not (address == title and address.startswith("0.")):
            pending.append(address)
            continue
        if address not in known:
            raise NoAnswerError(f"an answer that belongs to no name: {address}")
        name = known[address]
        if name in answers:
            raise NoAnswerError(f"two answers to the name {name or 'of the host'}")
        answers[name] = tuple(dict.fromkeys(pending))
        pending = []
    local = answers.pop("", NOT_ASKED)
    settings = [line.split() for line in resolv.splitlines()]
    return Names(
        local=local,
        peers=answers,
        order=_hosts_line(nsswitch),
        servers=tuple(
            words[1] for words in settings if len(words) > 1 and words[0] == "nameserver"
        ),
        search=tuple(
            dict.fromkeys(
                w for words in settings if words[:1] in (["search"], ["domain"]) for w in words[1:]
            )
        ),
    )


def _hosts_line(nsswitch: str) -> tuple[str, ...]:
    for line in nsswitch.splitlines():
        name, colon, services = line.partition("#")[0].partition(":")
        if colon and name.strip() == "hosts":
            return tuple(services.split())
    return ()
