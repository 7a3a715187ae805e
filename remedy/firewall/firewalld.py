"""firewalld: a set of peers and a policy of remedy, two files that only remedy writes.

A policy from any zone to the host with a negative priority is looked at before the zones, so it does not matter
which zone gets a packet (firewalld.policies(5), firewalld 0.9 and later). Sets and policies come into force by
a reload only, which drops what was set at run time without --permanent: where there is such a thing, nothing is
done and the user is told.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping

from remedy.firewall import nftables, nftables_rules, spans
from remedy.firewall.step import Amendment, CommandStep, Note, Opening, Path
from remedy.plan.change import CommandAction, FindingKind
from remedy.probe import File, HostState, NftChain, NftRule, NftRuleset, NftSet
from remedy.values import Unknown

TABLE = ("inet", "firewalld")
IPSET = "remedy-peers"
POLICY = "remedy"
IPSET_FILE = f"/etc/firewalld/ipsets/{IPSET}.xml"
POLICY_FILE = f"/etc/firewalld/policies/{POLICY}.xml"

AS_PLANNED, OTHERWISE = "as-planned", "otherwise"
_ANSWER = f"echo {AS_PLANNED} || echo {OTHERWISE}"
_ALLOW = f"filter_IN_policy_{POLICY}_allow"
_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_SHORT = "  <short>Hosts of the cluster, written by remedy</short>\n"

# Zones and direct rules as they are in force and as they are kept; interfaces are bound again after the reload.
# A reload that fails leaves no rule at all in force, so the former files are kept until it has not.
_DO = r"""
listing() {
    firewall-cmd "$@" --list-all-zones | sed -e '/^[^ ]/s/ (.*)$//' -e '/^  interfaces:/d'
    firewall-cmd "$@" --direct --get-all-rules
}
bound() {
    firewall-cmd --get-active-zones |
        awk '/^[^ ]/ { zone = $1 } $1 == "interfaces:" { for (i = 2; i <= NF; i++) print zone, $i }'
}
put() {
    if [ -z "$2" ]; then
        rm -f -- "$1"
    else
        mkdir -p -m 750 -- "${1%/*}" && printf '%s' "$2" >"$1.new" && chmod 644 "$1.new" &&
            sync "$1.new" && mv -f -- "$1.new" "$1"
    fi
}
if [ "$(listing)" != "$(listing --permanent)" ]; then
    echo 'firewalld has rules that were set without --permanent, and a reload would drop them.'
    echo 'Keep them with: firewall-cmd --runtime-to-permanent'
    exit 1
fi
if [ "$ipset" ] && [ -z "$(firewall-cmd --get-ipset-types)" ]; then
    echo 'firewalld cannot use sets of addresses here, which would hold the hosts of the cluster.'
    echo 'Install the package ipset, and restart firewalld.'
    exit 1
fi
running() { [ "$(firewall-cmd --state 2>&1)" = running ]; }
before=$(bound)
for file in "$ipset_file" "$policy_file"; do
    rm -f -- "$file.old"
    [ ! -e "$file" ] || cp -p -- "$file" "$file.old" || exit 1
done
refused=
if said=$({
    put "$ipset_file" "$ipset" && put "$policy_file" "$policy" &&
        firewall-cmd --check-config && firewall-cmd --reload && running
} 2>&1); then
    rm -f -- "$ipset_file.old" "$policy_file.old"
else
    for file in "$ipset_file" "$policy_file"; do
        if [ -e "$file.old" ]; then mv -f -- "$file.old" "$file"; else rm -f -- "$file"; fi
    done
    firewall-cmd --quiet --reload
    now='has no rules in force'
    ! running || now='has its former rules again'
    echo "firewalld did not take the rules, and $now: $said"
    refused=1
fi
after=$(bound)
printf '%s\n' "$before" | while read -r zone interface; do
    case $after in
        *"$zone $interface"*) continue ;;
    esac
    [ -n "$interface" ] || continue # nothing is bound
    firewall-cmd --quiet --zone="$zone" --change-interface="$interface" || exit 1
done && [ -z "$refused" ]
"""


def ipset_text(opening: Opening) -> str:
    """Return the file of the set of peers."""
    entries = "".join(
        f"  <entry>{spans.address_text(network)}</entry>\n"
        for network in spans.networks(opening.sources)
    )
    return f'{_HEAD}<ipset type="hash:net">\n{_SHORT}{entries}</ipset>\n'


def policy_text(opening: Opening) -> str:
    """Return the file of the policy."""
    rules = "".join(
        f'  <rule family="ipv4">\n    <source ipset="{IPSET}"/>\n'
        f'    <port port="{ports}" protocol="tcp"/>\n    <accept/>\n  </rule>\n'
        for ports in spans.port_texts(opening.ports, "-")
    )
    return (
        f'{_HEAD}<policy target="CONTINUE" priority="-100">\n{_SHORT}'
        f'  <ingress-zone name="ANY"/>\n  <egress-zone name="HOST"/>\n{rules}</policy>\n'
    )


def _runtime(opening: Opening) -> str:
    """Return the digest of what firewall-cmd shows of an opening in force, lines sorted."""
    lines = [spans.address_text(network) for network in spans.networks(opening.sources)]
    lines += [
        f'rule family="ipv4" source ipset="{IPSET}" port port="{ports}" protocol="tcp" accept'
        for ports in spans.port_texts(opening.ports, "-")
    ]
    return hashlib.sha256("".join(f"{line}\n" for line in sorted(lines)).encode()).hexdigest()


def _observe(opening: Opening) -> str:
    """Return sh text that tells whether firewalld holds an opening, in its files and in force."""
    files = hashlib.sha256((ipset_text(opening) + policy_text(opening)).encode()).hexdigest()
    if not opening.sources:
        return (
            f"[ ! -e {IPSET_FILE} ] && [ ! -e {POLICY_FILE} ] && "
            f"! firewall-cmd --quiet --info-policy={POLICY} 2>/dev/null && {_ANSWER}"
        )
    return (
        f"files=$(cat {IPSET_FILE} {POLICY_FILE} 2>/dev/null | sha256sum); "
        f"live=$({{ firewall-cmd --ipset={IPSET} --get-entries; "
        f"firewall-cmd --policy={POLICY} --list-rich-rules; }} "
        "2>/dev/null | sed 's/^[[:space:]]*//' | sort | sha256sum); "
        f'[ "${{files%% *}}/${{live%% *}}" = {files}/{_runtime(opening)} ] && {_ANSWER}'
    )


def _do(ipset: str, policy: str) -> str:
    values = {
        "ipset_file": IPSET_FILE,
        "ipset": ipset,
        "policy_file": POLICY_FILE,
        "policy": policy,
    }
    return (
        "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()) + _DO.lstrip()
    )


def present(ruleset: NftRuleset) -> Opening | None:
    """Return what remedy's policy lets in, as it is in force; None when it is not."""
    chain = next(
        (c for c in ruleset.chains if (c.family, c.table, c.name) == (*TABLE, _ALLOW)), None
    )
    if chain is None:
        return None
    rules = nftables_rules.chains(ruleset, *TABLE, Path())[_ALLOW].rules
    return Opening(
        spans.merge(x for r in rules for x in (r.sources or spans.ALL_ADDRESSES)),
        spans.merge(x for r in rules for x in (r.ports or spans.ALL_PORTS)),
    )


def propose(host: HostState, ruleset: NftRuleset | None, opening: Opening) -> Amendment:
    """Return how firewalld comes to let exactly ``opening`` in, now and after a reload or a reboot.

    Args:
        ruleset: the kernel's rules; None when firewalld keeps its own in iptables, where they
            cannot be distinguished.
        opening: what to let in.
    """
    files = (host.file(IPSET_FILE), host.file(POLICY_FILE))
    for file in files:
        if isinstance(file, Unknown):
            title = "could not read remedy's files of firewalld"
            return Amendment(notes=(Note(FindingKind.UNKNOWN, title, (file.reason,)),))
    old = (_text(files[0]), _text(files[1]))
    new = (ipset_text(opening), policy_text(opening)) if opening.sources else ("", "")
    live = None if ruleset is None else present(ruleset)
    in_force = ruleset is None or live == (opening if opening.sources else None)
    if old == new and in_force:
        return Amendment(live)
    title = f"firewalld: remove the policy {POLICY!r}, and reload"
    if opening.sources:
        title = f"firewalld: let the cluster's hosts in by a policy {POLICY!r} ahead of all zones, and reload"
    step = CommandStep(
        title,
        {
            "observe": _observe(opening),
            "before": OTHERWISE,
            "after": AS_PLANNED,
            "do": _do(*new),
            "undo": _do(*old),
        },
        writes=(IPSET_FILE, POLICY_FILE),
        disrupts="firewalld reloads its rules; connections stay",
    )
    return Amendment(live, (step,))


def observed(
    files: Mapping[str, File | Unknown], ruleset: NftRuleset, action: CommandAction
) -> str:
    """Return what ``observe`` of a step of this module prints on a host in this state."""
    current = [_text(files[path]) for path in (IPSET_FILE, POLICY_FILE)]
    live = present(ruleset)
    if action.observe.startswith("[ ! -e"):
        return AS_PLANNED if not any(current) and live is None else OTHERWISE
    digest = hashlib.sha256("".join(current).encode()).hexdigest()
    state = f"= {digest}/{_runtime(live or Opening())} ]"
    return AS_PLANNED if state in action.observe else OTHERWISE


def _text(file: File | Unknown) -> str:
    return file.content.decode("utf-8", "replace") if isinstance(file, File) and file.exists else ""


def after_reload(ruleset: NftRuleset, action: CommandAction) -> tuple[dict[str, File], NftRuleset]:
    """Return the two files and the ruleset after a step of this module."""
    words = dict(word.split("=", 1) for word in shlex.split(action.do)[:4])
    files = {}
    for path, content in ((IPSET_FILE, words["ipset"]), (POLICY_FILE, words["policy"])):
        files[path] = File(
            path=path, real_path=path, exists=bool(content), content=content.encode()
        )
    sets = [s for s in ruleset.sets if (s.family, s.table, s.name) != (*TABLE, IPSET)]
    before_zones = "filter_INPUT_POLICIES_pre"
    chains = [c for c in ruleset.chains if (c.family, c.table, c.name) != (*TABLE, _ALLOW)]
    jump = NftRule(0, "", json.dumps([{"jump": {"target": _ALLOW}}]))
    chains = [
        c._replace(rules=tuple(r for r in c.rules if _ALLOW not in r.expression)) for c in chains
    ]
    if words["policy"]:
        entries = _between(words["ipset"], "<entry>", "</entry>")
        sets.append(NftSet(*TABLE, IPSET, json.dumps({"elem": [_element(e) for e in entries]})))
        rules = tuple(
            NftRule(0, "", nftables.expression(f"@{IPSET}", nftables.items([ports])))
            for ports in _between(words["policy"], 'port port="', '"')
        )
        chains = [
            c._replace(rules=(jump, *c.rules))
            if (c.table, c.name) == ("firewalld", before_zones)
            else c
            for c in chains
        ]
        chains.append(NftChain(*TABLE, _ALLOW, "", 0, "", rules))
    return files, ruleset.model_copy(update={"sets": tuple(sets), "chains": tuple(chains)})


def _between(text: str, start: str, end: str) -> list[str]:
    return [part.partition(end)[0] for part in text.split(start)[1:]]


def _element(text: str) -> object:
    address, slash, length = text.partition("/")
    return {"prefix": {"addr": address, "len": int(length)}} if slash else text
