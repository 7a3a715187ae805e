"""A second opinion on rules as text: packets walked one by one, beside the judge that treats them as sets.

A rule is made up as what it says; from that come a line of iptables, a rule of nftables, and what it does with
one packet. Reader and judge see the text alone. Never is open said where a packet is dropped, and never a doubt
where what can be read keeps the undecidable rule from every packet.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall import iptables_rules, nftables_rules, spans
from remedy.firewall.hooks import Path, Tables, gates
from remedy.firewall.packets import Flow, Part
from remedy.firewall.reading import bounds_of
from remedy.firewall.traffic import Judgement, Traffic, judge
from remedy.probe import NftChain, NftRule, NftRuleset, NftSet

HOST, PEERS = "10.0.0.1", ("10.0.0.2", "10.0.0.3")
PORTS, CLIENTS = (29500, 40000), (32768, 50000)
PATH = Path("eth0", HOST, symmetric=True)
SETS = {"near": ("10.0.0.2",), "far": ("192.0.2.7",)}


@dataclass(frozen=True)
class Packet:
    """One packet between the host and a peer."""

    way: str
    peer: str
    sport: int
    dport: int
    state: str

    @property
    def source(self) -> str:
        """Where it comes from."""
        return self.peer if self.way == "in" else HOST

    @property
    def destination(self) -> str:
        """Where it goes to."""
        return HOST if self.way == "in" else self.peer


@dataclass(frozen=True)
class MadeRule:
    """What a rule says; None: nothing of that.

    Args:
        source: a network that it comes from.
        destination: a network that it goes to.
        named: a set that its source is in.
        sport: first and last port that it comes from.
        dport: first and last port that it goes to.
        interface: by which it comes in or goes out.
        states: of connection tracking.
        protocol: of its payload.
        asks: whether it asks for something that no text answers.
        action: accept, drop, return, jump or goto.
        target: the chain of a jump or goto.
        negated: whether its source or destination is any other.
    """

    source: str | None
    destination: str | None
    named: str | None
    sport: tuple[int, int] | None
    dport: tuple[int, int] | None
    interface: str | None
    states: tuple[str, ...] | None
    protocol: str | None
    asks: bool
    action: str
    target: str
    negated: bool

    def matches(self, packet: Packet, base: str) -> bool:
        """Return whether it matches a packet, where what it asks for is so."""

        def inside(address: str, network: str | None) -> bool:
            return network is None or (
                (IPv4Address(address) in IPv4Network(network)) is not self.negated
            )

        def among(port: int, ports: tuple[int, int] | None) -> bool:
            return ports is None or ports[0] <= port <= ports[1]

        return (
            inside(packet.source, self.source)
            and inside(packet.destination, self.destination)
            and (self.named is None or packet.source in SETS[self.named])
            and among(packet.sport, self.sport)
            and among(packet.dport, self.dport)
            and self.interface in (None, "eth0")
            and (self.states is None or packet.state in self.states)
            and self.protocol in (None, "tcp")
            and (base == "INPUT") is (packet.way == "in")
        )

    def line(self, chain: str, base: str) -> str:
        """Return it as iptables-save prints it."""
        not_ = "! " if self.negated else ""
        words = [f"-A {chain}"]
        words += [f"{not_}-s {self.source}"] if self.source else []
        words += [f"{not_}-d {self.destination}"] if self.destination else []
        words += [f"-{'i' if base == 'INPUT' else 'o'} {self.interface}"] if self.interface else []
        protocol = self.protocol or ("tcp" if self.sport or self.dport else None)
        words += [f"-p {protocol}"] if protocol else []
        if protocol == "tcp":
            words += [f"-m tcp --sport {self.sport[0]}:{self.sport[1]}"] if self.sport else []
            words += [f"-m tcp --dport {self.dport[0]}:{self.dport[1]}"] if self.dport else []
        if self.named:
            words.append(f"-m set --match-set {self.named} src")
        if self.states:
            words.append(f"-m conntrack --ctstate {','.join(self.states).upper()}")
        if self.asks:
            words.append("-m hashlimit --hashlimit-above 5/sec --hashlimit-name n")
        verdicts = {"jump": f"-j {self.target}", "goto": f"-g {self.target}"}
        return " ".join([*words, verdicts.get(self.action, f"-j {self.action.upper()}")])

    def expression(self, base: str) -> str:
        """Return it as nft prints it in JSON."""

        def match(left: dict[str, Any], right: Any, op: str = "==") -> dict[str, Any]:
            return {"match": {"op": op, "left": left, "right": right}}

        def network(text: str) -> dict[str, Any]:
            address, _, length = text.partition("/")
            return {"prefix": {"addr": address, "len": int(length)}}

        statements: list[dict[str, Any]] = []
        op = "!=" if self.negated else "=="
        for name, text in (("saddr", self.source), ("daddr", self.destination)):
            if text:
                left = {"payload": {"protocol": "ip", "field": name}}
                statements.append(match(left, network(text), op))
        if self.named:
            left = {"payload": {"protocol": "ip", "field": "saddr"}}
            statements.append(match(left, f"@{self.named}"))
        if self.interface:
            key = "iifname" if base == "INPUT" else "oifname"
            statements.append(match({"meta": {"key": key}}, self.interface))
        if self.protocol:
            statements.append(match({"meta": {"key": "l4proto"}}, self.protocol))
        if self.protocol in (None, "tcp"):
            for name, ports in (("sport", self.sport), ("dport", self.dport)):
                if ports:
                    left = {"payload": {"protocol": "tcp", "field": name}}
                    statements.append(match(left, {"range": list(ports)}))
        if self.states:
            statements.append(match({"ct": {"key": "state"}}, list(self.states), "in"))
        if self.asks:
            statements.append({"limit": {"rate": 5, "per": "second", "inv": True}})
        is_call = self.action in ("jump", "goto")
        statements.append({self.action: {"target": self.target} if is_call else None})
        return json.dumps(statements)


def seldom(*values: Any) -> st.SearchStrategy[Any]:
    """Return mostly None, so that rules with many conditions match some packet."""
    return st.sampled_from([*[None] * (2 * len(values)), *values])


networks = seldom("10.0.0.0/24", "10.0.0.2/32", "10.0.0.1/32", "192.0.2.0/24")
ranges = seldom((29500, 29500), (32768, 60999), (1, 1023), (1024, 65535), (40000, 50000))
made = st.builds(
    MadeRule,
    source=networks,
    destination=networks,
    named=seldom("near", "far"),
    sport=ranges,
    dport=ranges,
    interface=seldom("eth0", "docker0"),
    states=seldom(("new",), ("established", "related"), ("invalid",)),
    protocol=seldom("tcp", "udp"),
    asks=st.sampled_from([False, False, True]),
    action=st.sampled_from(["accept", "drop", "return", "jump", "goto"]),
    target=st.just("own"),
    negated=st.sampled_from([False, False, True]),
)
ends = made.filter(lambda rule: rule.action not in ("jump", "goto"))
Chains = dict[str, tuple[Sequence[MadeRule], str]]
chain_sets = st.fixed_dictionaries(
    {
        "INPUT": st.tuples(st.lists(made, max_size=4), st.sampled_from(["ACCEPT", "DROP"])),
        "OUTPUT": st.tuples(st.lists(made, max_size=3), st.sampled_from(["ACCEPT", "ACCEPT", "DROP"])),
        "own": st.tuples(st.lists(ends, max_size=3), st.just("-")),
    }
)  # fmt: skip


def packets() -> list[Packet]:
    """Return packets of each kind: of a connection's beginning, of later, and answers, both ways."""
    found = []
    for way, peer, port, client in itertools.product(("in", "out"), PEERS, PORTS, CLIENTS):
        found += [Packet(way, peer, client, port, state) for state in ("new", "established")]
        found.append(Packet(way, peer, port, client, "established"))
    return found


def walk(chains: Chains, name: str, base: str, packet: Packet, *, both: bool) -> set[str]:
    """Return how a packet can end in a chain: "accept", "drop" or "" (back to the caller)."""
    outcomes: set[str] = set()
    for rule in chains[name][0]:
        if not rule.matches(packet, base):
            continue
        if rule.asks and not both:
            continue
        if rule.action in ("jump", "goto"):
            inner = walk(chains, rule.target, base, packet, both=both)
            outcomes |= inner - {""}
            if "" in inner and rule.action == "goto":
                outcomes.add("")
            goes_on = "" in inner and rule.action == "jump"
        else:
            outcomes.add("" if rule.action == "return" else rule.action)
            goes_on = False
        if not rule.asks and not goes_on:
            return outcomes
    return outcomes | {""}


def possible(chains: Chains, packet: Packet, *, both: bool) -> set[str]:
    """Return how a packet can end, the policy of its base chain included."""
    base = "INPUT" if packet.way == "in" else "OUTPUT"
    policy = "drop" if chains[base][1] == "DROP" else "accept"
    return {outcome or policy for outcome in walk(chains, base, base, packet, both=both)}


def iptables(chains: Chains) -> Tables:
    """Return the chains as iptables-save prints them; a chain that both base chains call is written twice."""
    heads = [f":{name} {policy}" for name, (_, policy) in chains.items() if name != "own"]
    heads += [":own-INPUT -", ":own-OUTPUT -"]
    lines = []
    for base in ("INPUT", "OUTPUT"):
        for name in (base, "own"):
            chain = base if name == base else f"own-{base}"
            for rule in chains[name][0]:
                line = rule.line(chain, base)
                lines.append(f"{line}-{base}" if line.endswith((" -j own", " -g own")) else line)
    text = "\n".join(["*filter", *heads, *lines, "COMMIT", ""])
    sets = "".join(
        f"create {name} hash:ip family inet\n"
        + "".join(f"add {name} {entry}\n" for entry in entries)
        for name, entries in SETS.items()
    )
    return Tables(NftRuleset(tables=(), chains=(), sets=()), {"nft": text}, sets)


def nftables(chains: Chains) -> Tables:
    """Return the same chains as the probe has them of nftables, each base chain in a table of its own."""
    found = []
    for base in ("INPUT", "OUTPUT"):
        for name in (base, "own"):
            rules = tuple(
                NftRule(n, "", rule.expression(base)) for n, rule in enumerate(chains[name][0])
            )
            hook = base.lower() if name == base else ""
            policy = chains[base][1].lower() if hook else ""
            found.append(NftChain("inet", base, name, hook, 0, policy, rules))
    sets = tuple(
        NftSet("inet", base, name, json.dumps({"elem": list(entries)}))
        for base in ("INPUT", "OUTPUT")
        for name, entries in SETS.items()
    )
    return Tables(NftRuleset(tables=(), chains=tuple(found), sets=sets), {})


def judged(tables: Tables, way: str) -> list[Judgement]:
    """Return what is done with all packets of one way."""

    def ports(numbers: Sequence[int]) -> spans.Spans:
        return spans.merge((number, number) for number in numbers)

    peers = spans.of_networks(PEERS)
    traffic = Traffic(peers, ports(PORTS), ports(PORTS), ports(CLIENTS), ports(CLIENTS))
    return [gate.judgement for gate in gates(tables, traffic, PATH) if gate.way == way]


@given(chain_sets)
def test_the_judge_of_a_text_and_a_walk_of_packets_agree(chains: Chains) -> None:
    for tables in (iptables(chains), nftables(chains)):
        for way in ("in", "out"):
            mine = [packet for packet in packets() if packet.way == way]
            lost = {p for p in mine if "drop" in possible(chains, p, both=False)}
            maybe = {p for p in mine if "drop" in possible(chains, p, both=True)}
            found = judged(tables, way)
            dropped = [judgement.dropped for judgement in found if judgement.dropped]
            doubts = [doubt for judgement in found for doubt in judgement.doubts]
            assert bool(dropped) is bool(lost), (chains, way)
            assert not maybe or dropped or doubts, (chains, way)
            assert maybe or not doubts, (chains, way)
            peers = spans.merge(span for each in dropped for span in each.peers)
            assert peers == spans.of_networks({packet.peer for packet in lost})


def judged_alone(tables: Tables, packet: Packet) -> Judgement:
    """Return what is done with one packet."""
    base = "INPUT" if packet.way == "in" else "OUTPUT"
    flow = Flow(
        "in" if packet.way == "in" else "out", ("eth0",), int(IPv4Address(HOST)), symmetric=True
    )
    part = Part(
        spans.of_networks([packet.peer]),
        ((packet.sport, packet.sport),),
        ((packet.dport, packet.dport),),
        packet.state,
        packet.sport in PORTS,
    )
    bounds = bounds_of([part])
    if tables.iptables:
        chains = iptables_rules.chains(
            tables.iptables["nft"], "filter", flow, bounds, tables.ipsets
        )
    else:
        chains = nftables_rules.chains(tables.nft, "inet", base, flow, bounds)
    return judge(chains, base, [part])


@given(chain_sets)
def test_of_each_packet_alone_both_say_the_same(chains: Chains) -> None:
    for tables in (iptables(chains), nftables(chains)):
        for packet in packets():
            found = judged_alone(tables, packet)
            lost = "drop" in possible(chains, packet, both=False)
            maybe = "drop" in possible(chains, packet, both=True)
            assert bool(found.dropped) is lost, packet
            assert bool(found.doubts) is (maybe and not lost) or lost, packet
