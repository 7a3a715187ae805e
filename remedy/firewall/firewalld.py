"""firewalld: a set of peers and policies of remedy, files that only remedy writes.

A policy from any zone to the host with a negative priority is looked at before the zones, so it does not matter
which zone gets a packet (firewalld.policies(5), firewalld 0.9 and later). What leaves the host is only held
back by policies and direct rules; where it is, a second policy lets it pass, from the host to any zone. Sets
and policies come into force by a reload only, which drops what was set at run time without --permanent: where
there is such a thing, nothing is done and the user is told.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping

from remedy.firewall import nftables, nftables_rules, spans
from remedy.firewall.reading import hosts_and_ports
from remedy.firewall.spans import Spans
from remedy.firewall.step import (
    Amendment,
    CommandStep,
    Note,
    Opening,
    Side,
    Way,
    accepted,
    opening_of,
)
from remedy.plan.change import CommandAction, FindingKind
from remedy.probe import File, HostState, NftChain, NftRule, NftRuleset, NftSet
from remedy.values import Unknown

TABLE = ("inet", "firewalld")
IPSET = "remedy-peers"
POLICIES: Mapping[Way, str] = {"in": "remedy", "out": "remedy-out"}
IPSET_FILE = f"/etc/firewalld/ipsets/{IPSET}.xml"
POLICY_FILES: Mapping[Way, str] = {
    way: f"/etc/firewalld/policies/{name}.xml" for way, name in POLICIES.items()
}
FILES = (IPSET_FILE, *POLICY_FILES.values())
DIRECT_FILE = "/etc/firewalld/direct.xml"

AS_PLANNED, OTHERWISE = "as-planned", "otherwise"
_ANSWER = f"echo {AS_PLANNED} || echo {OTHERWISE}"
_ALLOW: Mapping[Way, str] = {
    "in": f"filter_IN_policy_{POLICIES['in']}_allow",
    "out": f"filter_OUT_policy_{POLICIES['out']}_allow",
}
_BEFORE_ZONES: Mapping[Way, str] = {
    "in": "filter_INPUT_POLICIES_pre",
    "out": "filter_OUTPUT_POLICIES_pre",
}
_ZONES: Mapping[Way, tuple[str, str]] = {"in": ("ANY", "HOST"), "out": ("HOST", "ANY")}
_HOSTS: Mapping[Way, str] = {"in": "source", "out": "destination"}
_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_SHORT = "  <short>Hosts of the cluster, written by remedy</short>\n"

# firewall-cmd takes one question a call, and is a program of Python that takes a fifth of a second to start:
# several calls run in one interpreter, its own. Of each: its words after "= ", and what it said. The status
# is that of the last call that failed.
_CALLS = r"""
calls() {
    read -r first <"$(command -v firewall-cmd)"
    case $first in
        '#!'*python*) ${first#'#!'} -c '
import runpy, sys
path, *calls = sys.argv[1:]
status = 0
for call in calls:
    print("=", call, flush=True)
    sys.argv = [path, *call.split()]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        status = end.code or status
sys.exit(status)' "$(command -v firewall-cmd)" "$@" ;;
        *)
            status=0
            for call in "$@"; do
                printf '= %s\n' "$call"
                firewall-cmd $call || status=$?
            done
            return "$status"
            ;;
    esac
}
"""

# Zones and direct rules as they are in force and as they are kept; interfaces are bound again after the reload.
# A reload that fails leaves no rule at all in force, so the former files are kept
# until it has not, in the folder of the run. roots, leads_to, digest, put and drop are of remedy/apply/host.
_DO = (
    _CALLS
    + r"""
answers() { # to these calls, in what was said
    for call in "$@"; do
        printf '%s\n' "$said" | awk -v call="= $call" '/^= / { on = $0 == call; next } on'
    done
}
listing() {
    answers "$@" | sed -e '/^[^ ]/s/ (.*)$//' -e '/^  interfaces:/d'
}
bound() {
    answers --get-active-zones |
        awk '/^[^ ]/ { zone = $1 } $1 == "interfaces:" { for (i = 2; i <= NF; i++) print zone, $i }'
}
bring() { # path, and what it is to hold; empty: it goes
    leads_to "$1"
    if [ ! -s "$2" ]; then
        drop "$1" "$REAL"
    else
        digest "$2" && put "$1" "$REAL" 644 "$2" "$SUM"
    fi
}
zones=--list-all-zones direct='--direct --get-all-rules'
said=$(calls $zones "$direct" "--permanent $zones" "--permanent $direct" --get-active-zones --get-ipset-types)
if [ "$(listing $zones "$direct")" != "$(listing "--permanent $zones" "--permanent $direct")" ]; then
    echo 'firewalld has rules that were set without --permanent, and a reload would drop them.'
    echo 'Keep them with: firewall-cmd --runtime-to-permanent'
    exit 1
fi
if [ "$ipset" ] && [ -z "$(answers --get-ipset-types)" ]; then
    echo 'firewalld cannot use sets of addresses here, which would hold the hosts of the cluster.'
    echo 'Install the package ipset, and restart firewalld.'
    exit 1
fi
before=$(bound)
work=$DIR/firewalld
rm -rf -- "$work" && mkdir -m 700 -- "$work" && printf %s "$ipset" >"$work/1" &&
    printf %s "$policy" >"$work/2" && printf %s "$out" >"$work/3" || exit 1
number=0
for file in "$ipset_file" "$policy_file" "$out_file"; do
    number=$((number + 1))
    roots "$file" || exit 1
    [ ! -e "$file" ] || cat -- "$file" >"$work/$number.old" || exit 1
done
bring_all() { # the end of the names
    missed=
    bring "$ipset_file" "$work/1$1" || missed=1
    bring "$policy_file" "$work/2$1" || missed=1
    bring "$out_file" "$work/3$1" || missed=1
    [ -z "$missed" ]
}
refused=
if said=$({ bring_all '' && firewall-cmd --check-config; } 2>&1); then
    said=$(calls --reload --state --get-active-zones 2>&1) || refused=1
else
    refused=1
fi
if [ "$refused" ]; then
    why=$(printf '%s\n' "$said" | sed -e '/^= /d' -e '/^success$/d')
    bring_all .old
    said=$(calls --reload --state --get-active-zones 2>&1)
    now='has no rules in force'
    [ "$(answers --state)" != running ] || now='has its former rules again'
    echo "firewalld did not take the rules, and $now: $why"
fi
after=$(bound)
printf '%s\n' "$before" | while read -r zone interface; do
    case $after in
        *"$zone $interface"*) continue ;;
    esac
    [ -n "$interface" ] || continue # nothing is bound
    firewall-cmd --quiet --zone="$zone" --change-interface="$interface" || exit 1
done && [ -z "$refused" ]
status=$?
rm -rf -- "$work"
exit "$status"
"""
)


def hosts_of(opening: Opening) -> Spans:
    """Return the hosts of both sides of an opening, which one set holds."""
    return spans.merge((*opening.sources, *opening.targets))


def ipset_text(opening: Opening) -> str:
    """Return the file of the set of peers; "" where there is no side to hold."""
    if not hosts_of(opening):
        return ""
    entries = "".join(
        f"  <entry>{spans.address_text(network)}</entry>\n"
        for network in spans.networks(hosts_of(opening))
    )
    return f'{_HEAD}<ipset type="hash:net">\n{_SHORT}{entries}</ipset>\n'


def policy_text(side: Side) -> str:
    """Return the file of the policy of one side; "" where there is none."""
    if not side.hosts:
        return ""
    ingress, egress = _ZONES[side.way]
    rules = "".join(
        f'  <rule family="ipv4">\n    <{_HOSTS[side.way]} ipset="{IPSET}"/>\n'
        f'    <port port="{ports}" protocol="tcp"/>\n    <accept/>\n  </rule>\n'
        for ports in spans.port_texts(side.ports, "-")
    )
    return (
        f'{_HEAD}<policy target="CONTINUE" priority="-100">\n{_SHORT}'
        f'  <ingress-zone name="{ingress}"/>\n  <egress-zone name="{egress}"/>\n{rules}</policy>\n'
    )


def texts_of(opening: Opening) -> tuple[str, str, str]:
    """Return the contents of ``FILES`` for an opening."""
    return ipset_text(opening), policy_text(opening.incoming), policy_text(opening.outgoing)


def _runtime(opening: Opening) -> str:
    """Return the digest of what firewall-cmd shows of an opening in force, lines sorted."""
    lines = [spans.address_text(network) for network in spans.networks(hosts_of(opening))]
    lines += [
        f'rule family="ipv4" {_HOSTS[side.way]} ipset="{IPSET}" port port="{ports}" protocol="tcp" accept'
        for side in opening.sides
        if side.hosts
        for ports in spans.port_texts(side.ports, "-")
    ]
    return hashlib.sha256("".join(f"{line}\n" for line in sorted(lines)).encode()).hexdigest()


def _observe(opening: Opening) -> str:
    """Return sh text that tells whether firewalld holds an opening, in its files and in force."""
    files = hashlib.sha256("".join(texts_of(opening)).encode()).hexdigest()
    if not hosts_of(opening):
        absent = " && ".join(f"[ ! -e {path} ]" for path in FILES)
        names = "|".join(f'*" {name} "*' for name in POLICIES.values())
        return (
            f'{absent} && case " $(firewall-cmd --get-policies 2>/dev/null) " in '
            f"{names}) false ;; esac && {_ANSWER}"
        )
    questions = [f"--ipset={IPSET} --get-entries"]
    questions += [f"--policy={name} --list-rich-rules" for name in POLICIES.values()]
    return (
        f"{_CALLS.lstrip()}files=$(cat {' '.join(FILES)} 2>/dev/null | sha256sum); "
        f"live=$(calls {shlex.join(questions)} "
        "2>/dev/null | sed -e '/^= /d' -e 's/^[[:space:]]*//' -e '/^$/d' | sort | sha256sum); "
        f'[ "${{files%% *}}/${{live%% *}}" = {files}/{_runtime(opening)} ] && {_ANSWER}'
    )


def _do(ipset: str, policy: str, out: str) -> str:
    values = {
        "ipset_file": IPSET_FILE,
        "ipset": ipset,
        "policy_file": POLICY_FILES["in"],
        "policy": policy,
        "out_file": POLICY_FILES["out"],
        "out": out,
    }
    return (
        "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()) + _DO.lstrip()
    )


def present(ruleset: NftRuleset) -> Opening | None:
    """Return what remedy's policies let through, as they are in force; None when none is."""
    sets = nftables_rules.sets_of(ruleset, *TABLE)
    sides = []
    for chain in ruleset.chains:
        for way, name in _ALLOW.items():
            if (chain.family, chain.table, chain.name) == (*TABLE, name):
                rules = (r for rule in chain.rules for r in nftables_rules.read_rule(rule, sets))
                known = hosts_and_ports(rule for rule in rules if rule.matters)
                sides.append(Side(way, *known) if known is not None else Side(way))
    return opening_of(sides) if sides else None


def propose(host: HostState, ruleset: NftRuleset | None, opening: Opening) -> Amendment:
    """Return how firewalld comes to let exactly ``opening`` in, now and after a reload or a reboot.

    Args:
        ruleset: the kernel's rules; None when firewalld keeps its own in iptables, where they
            cannot be distinguished.
        opening: what to let in.
    """
    files = [host.file(path) for path in FILES]
    for file in files:
        if isinstance(file, Unknown):
            title = "could not read remedy's files of firewalld"
            return Amendment(notes=(Note(FindingKind.UNKNOWN, title, (file.reason,)),))
    old = tuple(_text(file) for file in files)
    new = texts_of(opening)
    live = None if ruleset is None else present(ruleset)
    in_force = ruleset is None or live == (opening if hosts_of(opening) else None)
    if old == new and in_force:
        return Amendment(live)
    reload = "has firewalld reload, unless that would drop rules which no file holds"
    step = CommandStep(
        _title(opening),
        {
            "observe": _observe(opening),
            "before": OTHERWISE,
            "after": AS_PLANNED,
            "do": _do(*new),
            "undo": _do(*old),
            "does": f"writes the ipset {IPSET} and policies that use it, and {reload}: "
            f"{accepted(opening.sides)}",
            "undoes": f"puts the files of {IPSET} and its policies back as they were, and {reload}",
        },
        writes=FILES,
        disrupts="firewalld reloads its rules; connections stay",
        restarts="firewalld, a reload",
    )
    return Amendment(live, (step,))


def _title(opening: Opening) -> str:
    names = [POLICIES[side.way] for side in opening.sides if side.hosts]
    if not names:
        return f"firewalld: remove the policy {POLICIES['in']!r}, and reload"
    whom = " and be reached" if opening.targets else ""
    which = " and ".join(map(repr, names))
    kind = "a policy" if len(names) == 1 else "policies"
    return f"firewalld: let the cluster's hosts in{whom} by {kind} {which} ahead of all zones, and reload"


def observed(
    files: Mapping[str, File | Unknown], ruleset: NftRuleset, action: CommandAction
) -> str:
    """Return what ``observe`` of a step of this module prints on a host in this state."""
    current = [_text(files[path]) for path in FILES]
    live = present(ruleset)
    if action.observe.startswith("[ ! -e"):
        return AS_PLANNED if not any(current) and live is None else OTHERWISE
    digest = hashlib.sha256("".join(current).encode()).hexdigest()
    state = f"= {digest}/{_runtime(live or Opening())} ]"
    return AS_PLANNED if state in action.observe else OTHERWISE


def _text(file: File | Unknown) -> str:
    return file.content.decode("utf-8", "replace") if isinstance(file, File) and file.exists else ""


def after_reload(ruleset: NftRuleset, action: CommandAction) -> tuple[dict[str, File], NftRuleset]:
    """Return the files and the ruleset after a step of this module."""
    words = dict(word.split("=", 1) for word in shlex.split(action.do)[:6])
    contents = {"in": words["policy"], "out": words["out"]}
    files = {}
    for path, content in zip(FILES, (words["ipset"], *contents.values()), strict=True):
        files[path] = File(
            path=path, real_path=path, exists=bool(content), content=content.encode()
        )
    sets = [s for s in ruleset.sets if (s.family, s.table, s.name) != (*TABLE, IPSET)]
    if words["ipset"]:
        entries = _between(words["ipset"], "<entry>", "</entry>")
        sets.append(NftSet(*TABLE, IPSET, json.dumps({"elem": [_element(e) for e in entries]})))
    chains = list(ruleset.chains)
    for way, allow in _ALLOW.items():
        chains = _with_policy(chains, way, allow, contents[way])
    return files, ruleset.model_copy(update={"sets": tuple(sets), "chains": tuple(chains)})


def _with_policy(chains: list[NftChain], way: Way, allow: str, policy: str) -> list[NftChain]:
    """Return the chains with what firewalld makes of a policy of remedy's, or without it."""
    kept = [c for c in chains if (c.family, c.table, c.name) != (*TABLE, allow)]
    kept = [c._replace(rules=tuple(r for r in c.rules if allow not in r.expression)) for c in kept]
    if not policy:
        return kept
    address = "saddr" if way == "in" else "daddr"
    rules = tuple(
        NftRule(0, "", nftables.expression(f"@{IPSET}", nftables.items([ports]), address))
        for ports in _between(policy, 'port port="', '"')
    )
    jump = NftRule(0, "", json.dumps([{"jump": {"target": allow}}]))
    kept = [
        c._replace(rules=(jump, *c.rules))
        if (c.table, c.name) == ("firewalld", _BEFORE_ZONES[way])
        else c
        for c in kept
    ]
    return [*kept, NftChain(*TABLE, allow, "", 0, "", rules)]


def _between(text: str, start: str, end: str) -> list[str]:
    return [part.partition(end)[0] for part in text.split(start)[1:]]


def _element(text: str) -> object:
    address, slash, length = text.partition("/")
    return {"prefix": {"addr": address, "len": int(length)}} if slash else text
