"""IPsec: no policy of the kernel blocks what goes between peers.

Cures: connections to one peer that time out or get "Operation not permitted", though no firewall is in the way:
a policy with the action block (`ip xfrm policy`). Policies stay when the daemon that made them is killed.

How it is judged: a policy in or out whose addresses hold this host's cluster address and those of peers. One
that blocks and names single hosts is removed, under guard. One that wants packets encrypted is UNKNOWN: whether
both ends agree is seen only where they talk; where that is the plan, accept it by its text. One for a whole
network is named and stays. Policies of daemons that run come back: stop or change the daemon.

The kernel is asked only where it has IPsec in use already, since asking would load it: where it has not, there
is no policy.

Sources: ip-xfrm(8); Linux net/xfrm/xfrm_policy.c.
"""

from __future__ import annotations

import re
import shlex

from pydantic import Field

from remedy.deploys._peers import Place, names_of, place_of
from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Change, CommandAction, Risk, Workbench, command, remedy
from remedy.probe import HostState, IpsecPolicy, Routing
from remedy.spec import SpecSection
from remedy.values import Unknown

THERE, ABSENT = "there", "absent"
_LIST = ["ip", "xfrm", "policy", "list"]


class IpsecSpec(SpecSection):
    """``repair``: whether a policy that blocks a peer is removed; ``accept``: policies, as findings show them,
    that are right as they are.
    """

    repair: bool = True
    accept: tuple[str, ...] = Field(
        (),
        examples=[
            ["src 10.214.4.13/32 dst 10.214.4.11/32 dir in action block priority 0 ptype main"]
        ],
    )


Bench = Workbench[IpsecSpec]


@remedy("IPsec", IpsecSpec, cures=("ipsec-policy",), order=38)
def ipsec(bench: Bench) -> None:
    """Decide which policies keep peers apart, and which of them can go."""
    place = place_of(bench.fleet, bench.host)
    if place is None or not bench.fleet.known_addresses:
        return
    routing = bench.known(bench.host.routing)
    for policy in bench.need(routing.ipsec, "the policies of IPsec"):
        peers = _peers(policy, place)
        if not peers or policy.action == "allow" or policy.text in bench.settings.accept:
            continue
        names = names_of(bench.fleet, peers)
        way = "from" if policy.direction == "in" else "to"
        evidence = f"ip xfrm policy: {policy.text}"
        accept = f'add to ipsec.accept in remedy.yaml: "{policy.text}"'
        if policy.action == "ipsec":
            title = f"packets {way} {names} have to be encrypted, and whether both ends agree is not known"
            bench.unknown(title, evidence, f"If they do, {accept}")
            continue
        title = f"a policy of IPsec blocks packets {way} {names}"
        if bench.settings.repair and policy.plain and _is_narrow(policy):
            bench.run(
                f"remove the policy {policy.text}",
                because=bench.drift(title, evidence),
                risk=Risk.MEDIUM,
                guarded=True,
                observe=f"if {command(_LIST + _words(policy))} 2>/dev/null | grep -q 'action block'; "
                f"then echo {THERE}; else echo {ABSENT}; fi",
                before=THERE,
                after=ABSENT,
                do=_delete(policy),
                undo=_add(policy),
            )
        else:
            note = bench.blocked if bench.settings.repair else bench.report
            note(
                title, evidence, f"If nothing needs it: {_delete(policy)}; if it is right, {accept}"
            )


def _peers(policy: IpsecPolicy, place: Place) -> Spans:
    """Return the peers that a policy is for, on the way in or out; () where it is for none."""
    source, destination = (
        spans.of_networks([text]) for text in (policy.source, policy.destination)
    )
    local = spans.of_networks([place.address])
    if policy.direction == "out" and spans.meet(source, local):
        return spans.meet(destination, place.peers)
    if policy.direction == "in" and spans.meet(destination, local):
        return spans.meet(source, place.peers)
    return ()


def _is_narrow(policy: IpsecPolicy) -> bool:
    return policy.source.endswith("/32") and policy.destination.endswith("/32")


def _words(policy: IpsecPolicy) -> list[str]:
    return ["src", policy.source, "dst", policy.destination, "dir", policy.direction]


def _delete(policy: IpsecPolicy) -> str:
    return command(["ip", "xfrm", "policy", "delete", *_words(policy)])


def _add(policy: IpsecPolicy) -> str:
    priority = re.search(r"priority (\d+)", policy.text)
    words = ["action", "block", "priority", priority[1] if priority else "0"]
    return command(["ip", "xfrm", "policy", "add", *_words(policy), *words])


def policy_of(text: str) -> IpsecPolicy:
    """Return the plain policy that blocks which ip shows like this."""
    words = text.split()
    return IpsecPolicy(
        source=words[1],
        destination=words[3],
        direction=words[5],
        action="block",
        plain=True,
        text=text,
    )


@ipsec.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: a policy less, or one again."""
    assert isinstance(change.action, CommandAction)
    assert isinstance(state.routing, Routing)
    words = shlex.split(change.action.do)
    place = tuple(words[at] for at in (5, 7, 9))
    assert not isinstance(state.routing.ipsec, Unknown)
    policies = [p for p in state.routing.ipsec if (p.source, p.destination, p.direction) != place]
    if words[3] == "add":
        policies.append(policy_of(f"{' '.join(words[4:])} ptype main"))
    routing = state.routing.model_copy(update={"ipsec": tuple(policies)})
    return state.model_copy(update={"routing": routing})


@ipsec.observes
def observation(state: HostState, change: Change) -> str:
    """Return whether the policy is there."""
    assert isinstance(change.action, CommandAction)
    assert isinstance(state.routing, Routing)
    words = shlex.split(change.action.do)
    place = tuple(words[at] for at in (5, 7, 9))
    assert not isinstance(state.routing.ipsec, Unknown)
    blocked = {
        (p.source, p.destination, p.direction) for p in state.routing.ipsec if p.action == "block"
    }
    return THERE if place in blocked else ABSENT
