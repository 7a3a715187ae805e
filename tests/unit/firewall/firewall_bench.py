"""Hosts with firewalls of every kind, and plans for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from remedy.deploys.firewall import FirewallSpec
from remedy.firewall import firewalld, iptables, nftables, spans, ufw
from remedy.firewall.hooks import Path, Tables, gates
from remedy.firewall.step import Opening
from remedy.firewall.traffic import Judgement, Traffic
from remedy.plan import Finding, FindingKind, Fleet, Plan, promised
from remedy.probe import File, Firewalls, HostState, NftChain, NftRule, NftRuleset, Sysctls
from tests.unit import plans
from tests.unit.build import NO_FIREWALL, fleet, host_state, with_section

PEERS = spans.of_networks(["10.0.0.2", "10.0.0.3"])
PORTS = spans.merge([(29400, 29400), (29500, 29563), (32768, 60999)])
CLIENTS = ((32768, 60999),)
TRAFFIC = Traffic(PEERS, PORTS, PORTS, CLIENTS, CLIENTS, ((29400, 29400), (29500, 29563)))
WAY = Path("eth0", "10.0.0.1", symmetric=True)
HEAD = ":INPUT {policy}\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n"

UFW_LIVE = """\
*filter
:INPUT DROP
:FORWARD DROP
:OUTPUT ACCEPT
:ufw-before-input -
:ufw-not-local -
:ufw-user-input -
-A INPUT -j ufw-before-input
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -m conntrack --ctstate INVALID -j DROP
-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A ufw-before-input -j ufw-not-local
-A ufw-before-input -d 224.0.0.251/32 -p udp -m udp --dport 5353 -j ACCEPT
-A ufw-before-input -j ufw-user-input
-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN
-A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A ufw-not-local -j DROP
-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT
COMMIT
"""

UFW_RULES = b"""\
*filter
:ufw-user-input - [0:0]
### RULES ###

### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
-A ufw-user-input -p tcp --dport 22 -j ACCEPT

### END RULES ###
COMMIT
"""

NFT_CONF = b"""\
flush ruleset
table inet filter { # ours
\tchain input {
\t\ttype filter hook input priority filter; policy drop;
\t\ttcp dport 22 accept
\t}
}"""


def plan_of(fleet: Fleet) -> Plan:
    return plans.plan_of(fleet, "firewall")


def settled(given_fleet: Fleet) -> Plan:
    """Check that the plan of a fleet does what it promises and can be taken back; return it."""
    plan = plan_of(given_fleet)
    plans.check_converged(given_fleet, plan, "firewall")
    plans.check_commands(given_fleet, plan)
    assert {c.host for c in plan.changes} <= {f.host for f in plan.findings}
    back = promised(promised(given_fleet, plan), plans.taken_back(plan))
    for name, state in given_fleet.states.items():
        assert rules_in_force(back.states[name]) == rules_in_force(state)
        assert plans.contents(back.states[name]) == plans.contents(state)
    return plan


def rules_in_force(state: HostState) -> list[object]:
    """Return the rules in force; of rules of different chains the order means nothing."""
    walls = state.firewalls
    assert isinstance(walls, Firewalls)
    texts = [str(walls.iptables), str(walls.iptables_legacy)]
    return [
        walls.nft,
        walls.ufw,
        *(sorted(text.splitlines(), key=lambda line: line.split()[:2]) for text in texts),
    ]


def judgements(
    *, iptables: str = "", nft: NftRuleset | None = None, path: Path = WAY, accepted: str = ""
) -> list[Judgement]:
    """Return what each base chain of some rules does with the traffic between two hosts."""
    tables = Tables(nft or NO_NFT, {"nft": iptables} if iptables else {})
    known = frozenset({accepted}) if accepted else frozenset[str]()
    return [gate.judgement for gate in gates(tables, TRAFFIC, path, known)]


def is_dropped(found: Sequence[Judgement]) -> bool:
    """Return whether something is lost for certain."""
    return any(judgement.dropped for judgement in found)


def doubts_of(found: Sequence[Judgement]) -> list[str]:
    """Return the rules by which something may be lost."""
    return [doubt.words for judgement in found for doubt in judgement.doubts]


NO_NFT = NftRuleset(tables=(), chains=(), sets=())


def saved(*rules: str, policy: str = "DROP") -> str:
    body = "".join(f"{rule}\n" for rule in rules)
    return f"*filter\n{HEAD.format(policy=policy)}{body}COMMIT\n"


def nft(*expressions: object, policy: str = "drop", table: str = "filter") -> NftRuleset:
    rules = tuple(NftRule(n, "", json.dumps(e)) for n, e in enumerate(expressions, 1))
    chain = NftChain("inet", table, "input", "input", 0, policy, rules)
    return NftRuleset(tables=(("inet", table),), chains=(chain,), sets=())


def match(field: str, right: object, protocol: str = "tcp", op: str = "==") -> dict[str, object]:
    left = {"payload": {"protocol": protocol, "field": field}}
    return {"match": {"op": op, "left": left, "right": right}}


ESTABLISHED = [
    {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}},
    {"accept": None},
]

SSH = [match("dport", 22), {"accept": None}]

FIREWALLD = NftRuleset(
    tables=(("inet", "firewalld"),),
    chains=(
        NftChain(
            "inet", "firewalld", "filter_INPUT", "input", 10, "accept",
            (
                NftRule(1, "", json.dumps(ESTABLISHED)),
                NftRule(2, "", json.dumps([{"jump": {"target": "filter_INPUT_ZONES"}}])),
                NftRule(3, "", json.dumps([{"reject": {"type": "icmpx"}}])),
            ),
        ),
        NftChain(
            "inet", "firewalld", "filter_INPUT_ZONES", "", 0, "",
            (NftRule(4, "", json.dumps([{"goto": {"target": "filter_IN_public"}}])),),
        ),
        NftChain(
            "inet", "firewalld", "filter_IN_public", "", 0, "",
            (
                NftRule(5, "", json.dumps([{"jump": {"target": "filter_INPUT_POLICIES_pre"}}])),
                NftRule(6, "", json.dumps(SSH)),
            ),
        ),
        NftChain("inet", "firewalld", "filter_INPUT_POLICIES_pre", "", 0, "", ()),
    ),
    sets=(),
)  # fmt: skip


def file(path: str, content: bytes | None = None) -> File:
    return File(path=path, real_path=path, exists=content is not None, content=content or b"")


def walled(name: str, address: str, *, files: Sequence[File] = (), **walls: object) -> HostState:
    """Return a host with firewalls."""
    known = {
        path: file(path)
        for path in (
            *iptables.SAVED, *nftables.MAIN_FILES, nftables.INCLUDED,
            *firewalld.FILES, ufw.RULES,
        )
    }  # fmt: skip
    state = host_state(name, address, files={**known, **{f.path: f for f in files}})
    live = {"net.ipv4.ip_local_port_range": "32768 60999"}
    return state.model_copy(
        update={
            "firewalls": NO_FIREWALL.model_copy(update=walls),
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
        }
    )


def several(*, spec: FirewallSpec | None = None) -> Fleet:
    """Return a fleet with one host for each kind of firewall, and one without."""
    given_spec = with_section("firewall", spec or FirewallSpec())
    return fleet(
        walled("bare", "10.0.0.1"),
        walled("ufw", "10.0.0.2", iptables=UFW_LIVE, ufw=True, files=[file(ufw.RULES, UFW_RULES)]),
        walled("fwd", "10.0.0.3", nft=FIREWALLD, firewalld="public\n"),
        walled("nft", "10.0.0.4", nft=nft(ESTABLISHED, SSH), files=[file("/etc/nftables.conf", NFT_CONF)]),
        walled("ipt", "10.0.0.5", iptables=saved(policy="DROP")),
        walled(
            "leg", "10.0.0.6",
            iptables_legacy=saved("-A INPUT -j REJECT --reject-with icmp-host-prohibited", policy="ACCEPT"),
            files=[file("/etc/iptables/rules.v4", saved("-A INPUT -j DROP").encode())],
        ),
        spec=given_spec,
    )  # fmt: skip


OPENED_PEERS = spans.of_networks(["10.0.0.2", "10.0.0.4/30"])
OPENING = Opening(OPENED_PEERS, ((22, 22), (29500, 29563)))


def fleet_of(*states: HostState, **settings: Any) -> Fleet:
    return fleet(*states, spec=with_section("firewall", FirewallSpec.model_validate(settings)))


def two_hosts(**settings: Any) -> Fleet:
    return fleet_of(walled("a", "10.0.0.1", iptables=saved()), walled("b", "10.0.0.2"), **settings)


def findings(plan: Plan, kind: FindingKind, host: str = "a") -> list[Finding]:
    return [f for f in plan.findings if f.host == host and f.kind is kind]
