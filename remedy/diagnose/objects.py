"""What lines and findings name: ports, hosts, and words such as an interface, an address, a path, a variable.

A finding of the same cause explains a failure only where it is about the thing that failed: that port, that
host, that interface. This is how the two are compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from remedy.diagnose.diagnosis import Quote
from remedy.plan import Finding, FindingKind
from remedy.text import is_number

_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_TOKEN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*")
_PORTS = re.compile(
    r"(?:\bports?|\bdports?|\bneeded:|\d\]?:|\]:|<)\s*[{(]?\s*"
    r"(\d{1,5}(?:[-:]\d{1,5})?(?:(?:,| and) ?\d{1,5}(?:[-:]\d{1,5})?)*)"
)
_SPAN = re.compile(r"(\d+)(?:[-:](\d+))?")
_LATER = re.compile(r"\b(?:at|next) boot\b|\breboot\b")
# Details of a line that are numbers of its own, and no thing that a finding could be about.
_NUMBERS = frozenset(("rank", "code", "port"))

# These causes show in the state of a host as they are, whatever a line names: versions, limits, clocks.
_PLAIN = frozenset(
    (
        *("clock-skew", "driver-mismatch", "nccl-version-mismatch", "mpi-version-conflict"),
        *("fabricmanager-not-running", "container-gpu-runtime", "memlock-limit", "nofile-limit"),
        *("ib-roce-mixed", "ib-link-fault", "gpu-hardware-xid", "hccl-rank-table"),
        *("missing-library", "efa-plugin-missing", "session-limit", "kernel-limit"),
    )
)
# These are about the link to a host: a finding on any other host does not explain them.
_OF_HOSTS = frozenset(
    (
        *("firewall-ports", "network-unreachable", "mtu-mismatch", "route-to-peer"),
        *("neighbour-entry", "traffic-control", "ipsec-policy", "kernel-setting"),
    )
)
# These are about an interface, or a name: what is wrong with another of its kind does not explain them.
_OF_THINGS = frozenset(("wrong-interface", "mpi-nic-mismatch", "duplicate-hostname"))
_THINGS = ("interface", "host")
# These are about a library or a module: a finding has to be about where those are looked for.
_SEARCHED = {
    "library": frozenset(("LD_LIBRARY_PATH",)),
    "module": frozenset(("PYTHONPATH", "PATH")),
}
# These are about a name that was asked for: that others resolve wrongly does not explain them.
_OF_NAMES = frozenset(("hostname-unresolvable", "loopback-hostname"))
_NAMES = ("host", "name")
_LISTED = re.compile(r"([A-Za-z0-9][\w.-]*)(?::|\Z)")
_CUT = 8  # findings list that many names at most
# What a launcher sets for its own processes, others do not read.
_LAUNCHERS: Mapping[str, re.Pattern[str]] = {
    "paddle": re.compile(r"PADDLE_|FLAGS_|POD_IP|TRAINING_ROLE"),
    "mindspore": re.compile(r"MS_"),
    "torch": re.compile(
        r"RANK$|(LOCAL_|GROUP_|ROLE_)?(WORLD_SIZE|RANK)$|MASTER_|TORCHELASTIC_|PET_"
    ),
}
_OPEN_MPI = "OMPI_MCA_"
_NO_HOST = frozenset(("0.0.0.0",))  # noqa: S104 compared, not bound
# These are about a port, and a link alone does not tell whether it is this one that is closed or taken.
_OF_PORTS = frozenset(("firewall-ports", "master-port-in-use"))


@dataclass(frozen=True)
class Named:
    """What a text names.

    Args:
        ports: the first and last of each range.
        hosts: by their names in the inventory.
        words: everything else that a finding can be about.
        things: those of the words that are an interface, or a name that is no host of the inventory.
        searched: the variables that decide where a library or a module is looked for, where a line lacks such.
        settings: of Open MPI.
        names: those that were asked for.
        strangers: addresses of no host of the inventory.
        launchers: whose lines they are, or whose variables.
    """

    ports: frozenset[tuple[int, int]]
    hosts: frozenset[str]
    words: frozenset[str]
    things: frozenset[str] = frozenset()
    searched: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()
    launchers: frozenset[str] = frozenset()

    def beyond(self, ports: Collection[int]) -> tuple[int, ...]:
        """Return the single ports that are none of those."""
        return tuple(sorted(low for low, high in self.ports if low == high and low not in ports))

    def shares_port(self, text: Named) -> bool:
        """Return whether both name a port."""
        return any(
            low <= high_other and low_other <= high
            for low, high in self.ports
            for low_other, high_other in text.ports
        )


def of_quotes(
    quotes: Sequence[Quote], hosts: frozenset[str], addresses: Mapping[str, str]
) -> Named:
    """Return what the lines that speak for a cause name.

    Args:
        quotes: the lines.
        hosts: the names of the hosts that could be read.
        addresses: the host of each cluster address.
    """
    ports: set[tuple[int, int]] = set()
    words: set[str] = set()
    for quote in quotes:
        ports |= _ports(quote.text)
        if is_number(port := quote.details.get("port", "")):
            ports.add((int(port), int(port)))
        words |= _words(quote, hosts)
    named = {*words, *(addresses[word] for word in words if word in addresses)}
    details = [item for quote in quotes for item in quote.details.items()]
    things = {value for name, value in details if name in _THINGS} - hosts - addresses.keys()
    return Named(
        frozenset(ports),
        frozenset(named & hosts),
        frozenset(words - hosts),
        frozenset(things),
        frozenset().union(*(_SEARCHED.get(name, frozenset()) for name, _ in details)),
        frozenset(value for name, value in details if name == "setting"),
        frozenset().union(*map(_asked_for, quotes)),
        frozenset({w for w in words if _ADDRESS.fullmatch(w)} - addresses.keys() - _NO_HOST),
        frozenset(map(_launcher, quotes)) - {""},
    )


def _asked_for(quote: Quote) -> set[str]:
    """Return the names that were asked for: of a line that has both, the peer's and not that of who asked."""
    peer = quote.details.get("peer")
    return {peer} if peer else {v for name, v in quote.details.items() if name in _NAMES}


def _launcher(quote: Quote) -> str:
    """Return whose line it is, "" where it does not say so."""
    text = f"{quote.symptom} {quote.text}".lower()
    by_word = {"paddle": "paddle", "mindspore": "mindspore", "torch": "torch", "c10d": "torch"}
    if quote.symptom.startswith("ms-"):
        return "mindspore"
    return next((name for word, name in by_word.items() if word in text), "")


def _words(quote: Quote, hosts: frozenset[str]) -> set[str]:
    """Return what a line names beside ports."""
    words = {value for name, value in quote.details.items() if name not in _NUMBERS}
    words |= {*_ADDRESS.findall(quote.text), *_VARIABLE.findall(quote.text)}
    return words | ({token.rstrip(".") for token in _TOKEN.findall(quote.text)} & hosts)


def of_finding(finding: Finding, hosts: frozenset[str]) -> Named:
    """Return what a finding names: its host, and what its title and evidence hold."""
    text = "\n".join((finding.title, *finding.evidence))
    tokens = {token.rstrip(".") for token in _TOKEN.findall(text)}
    tokens |= {part for token in tokens for part in token.split("/")}
    tokens |= {token.removeprefix(_OPEN_MPI) for token in tokens}
    named = {finding.host} if finding.host else tokens & hosts
    launchers = (n for n, pattern in _LAUNCHERS.items() if any(map(pattern.match, tokens)))
    return Named(
        frozenset(_ports(text)),
        frozenset(named),
        frozenset(tokens),
        names=_listed(finding) | (tokens & hosts) if len(finding.evidence) < _CUT else frozenset(),
        launchers=frozenset(launchers),
    )


def _listed(finding: Finding) -> frozenset[str]:
    """Return the names that the evidence lists, each with what is wrong with it or alone on its line."""
    names = (match[1] for line in finding.evidence if (match := _LISTED.match(line)))
    return frozenset(name for name in names if not _ADDRESS.fullmatch(name))


def explains(finding: Finding, quotes: Named, hosts: frozenset[str]) -> bool:
    """Return whether a finding of a cause explains the lines that speak for it.

    What is only worth knowing explains nothing unless it names the very thing; what is wrong on a host does,
    unless it is about another port or another host. What will be wrong after a boot has broken nothing yet.
    """
    seen, label = of_finding(finding, hosts), finding.label
    if _LATER.search(finding.title) or _is_about_another(label, quotes, seen):
        return False
    if finding.kind is not FindingKind.REPORT or label in _PLAIN:
        return True
    if label in _OF_PORTS:
        return quotes.shares_port(seen)
    others = (seen.names & hosts) - {finding.host}
    if label in _OF_HOSTS and others and quotes.hosts:
        # What a host says of others is about these: of a link to someone else it says nothing.
        return bool(quotes.hosts & others)
    shared = quotes.words & seen.words
    return bool(shared or (label in _OF_HOSTS and quotes.hosts & seen.hosts))


def _is_about_another(label: str, quotes: Named, seen: Named) -> bool:
    """Return whether lines and a finding of one cause name different things of the kind that it is about."""
    if label in _OF_PORTS and quotes.ports and seen.ports and not quotes.shares_port(seen):
        return True
    pairs = _compared(label, quotes, seen)
    return any(named and other and not named & other for named, other in pairs)


def _compared(
    label: str, quotes: Named, seen: Named
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield what lines name of each kind that a cause is about, with what a finding names of it."""
    if label in _OF_HOSTS:
        yield quotes.hosts, seen.hosts
        yield frozenset() if quotes.hosts else quotes.strangers, seen.words
    if label in _OF_NAMES and seen.names:
        yield quotes.names | {name.partition(".")[0] for name in quotes.names}, seen.words
    if label == "rank-mismatch":
        yield quotes.launchers, seen.launchers
    if label in _OF_THINGS:
        yield quotes.things, seen.words
        yield quotes.settings, seen.words
    if label == "env-not-propagated":
        yield quotes.searched, seen.words


def _ports(text: str) -> set[tuple[int, int]]:
    ports = set()
    for group in _PORTS.findall(text):
        for low, high in _SPAN.findall(group):
            ports.add((int(low), int(high or low)))
    return ports
