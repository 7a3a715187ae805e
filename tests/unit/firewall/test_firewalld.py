"""firewalld: a policy and a set of its own, what is read of them, and their files."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path as FilePath

from remedy.firewall import firewalld, spans
from remedy.plan import CommandAction, FindingKind, promised
from remedy.probe import Firewalls, HostState, NftRuleset
from remedy.values import Unknown
from tests.unit.build import fleet
from tests.unit.firewall.firewall_bench import (
    FIREWALLD,
    OPENING,
    findings,
    fleet_of,
    plan_of,
    saved,
    walled,
)


def test_a_firewalld_without_any_rule_is_told() -> None:
    """So it is left by a reload that failed: it runs, and everybody gets in."""
    bare = NftRuleset(tables=(("inet", "firewalld"),), chains=(), sets=())
    plan = plan_of(fleet(walled("fwd", "10.0.0.3", nft=bare, firewalld="public\n")))
    assert [(f.kind, f.title) for f in plan.findings] == [
        (
            FindingKind.REPORT,
            "firewalld runs, but none of its rules is in force: every port is open to everybody",
        )
    ]
    assert plan.changes == ()


def test_the_set_and_the_policy_are_files_as_firewalld_reads_them() -> None:
    ipset, policy = firewalld.ipset_text(OPENING), firewalld.policy_text(OPENING.incoming)
    assert ipset.startswith('<?xml version="1.0"')
    assert "<entry>10.0.0.2</entry>" in ipset
    assert "<entry>10.0.0.4/30</entry>" in ipset
    assert 'type="hash:net"' in ipset
    assert 'port port="22"' in policy
    assert 'port port="29500-29563"' in policy
    assert 'priority="-100"' in policy
    assert '<ingress-zone name="ANY"/>' in policy
    assert '<egress-zone name="HOST"/>' in policy
    assert (
        policy.count("<rule ")
        == policy.count("<accept/>")
        == policy.count('ipset="remedy-peers"')
        == 2
    )
    for text in (ipset, policy):
        assert "<short>" in text


def firewalld_action(state: HostState) -> CommandAction:
    (change,) = plan_of(fleet_of(state, walled("b", "10.0.0.2"))).for_host("a")
    assert isinstance(change.action, CommandAction)
    return change.action


def test_what_is_looked_at_is_what_firewalld_shows_of_the_opening(tmp_path: FilePath) -> None:
    action = firewalld_action(walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n"))
    words = dict(word.split("=", 1) for word in shlex.split(action.do)[:4])
    for name, path in (("ipset", firewalld.IPSET_FILE), ("policy", firewalld.POLICY_FILES["in"])):
        assert words[f"{name}_file"] == path
        (tmp_path / name).write_text(words[name])
    entries = "\\n".join(x.partition("</entry>")[0] for x in words["ipset"].split("<entry>")[1:])
    ports = [x.partition('"')[0] for x in words["policy"].split('port port="')[1:]]
    rules = "\\n".join(
        f'rule family="ipv4" source ipset="remedy-peers" port port="{port}" protocol="tcp" accept'
        for port in ports
    )
    tool = tmp_path / "firewall-cmd"
    tool.write_text(
        f"#!/bin/sh\ncase $1 in --ipset=remedy-peers) printf '{entries}\\n' ;; "
        f"--policy=remedy) printf '\\t{rules}\\n' ;; esac\n"
    )
    tool.chmod(0o755)
    look = action.observe
    for name, path in (("ipset", firewalld.IPSET_FILE), ("policy", firewalld.POLICY_FILES["in"])):
        look = look.replace(path, str(tmp_path / name))

    def seen() -> str:
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", look], capture_output=True, text=True, check=False, env=environment
        )
        return done.stdout.strip()

    assert seen() == action.after
    (tmp_path / "ipset").write_text(words["ipset"] + "\n")
    assert seen() == action.before
    (tmp_path / "ipset").write_text(words["ipset"])
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert seen() == action.before


def test_a_policy_that_nobody_needs_is_removed_with_its_files() -> None:
    before = fleet_of(
        walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n"), walled("b", "10.0.0.2")
    )
    after = promised(before, plan_of(before)).states["a"]
    lone = fleet_of(after)
    plan = plan_of(lone)
    (change,) = plan.for_host("a")
    assert isinstance(change.action, CommandAction)
    assert "remove" in change.title
    assert firewalld.IPSET_FILE in change.action.observe
    assert firewalld.POLICY_FILES["in"] in change.action.observe
    assert promised(lone, plan).states["a"].firewalls == before.states["a"].firewalls


def test_what_the_policy_lets_in_is_read_from_the_rules_in_force() -> None:
    before = fleet_of(
        walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n"), walled("b", "10.0.0.2")
    )
    after = promised(before, plan_of(before)).states["a"].firewalls
    assert isinstance(after, Firewalls)
    assert isinstance(after.nft, NftRuleset)
    opening = firewalld.present(after.nft)
    assert opening is not None
    assert opening.sources == spans.of_networks(["10.0.0.1", "10.0.0.2"])
    assert firewalld.present(FIREWALLD) is None


def test_files_of_firewalld_that_cannot_be_read_are_unknown() -> None:
    state = walled("a", "10.0.0.1", nft=FIREWALLD, firewalld="public\n")
    state = state.model_copy(
        update={"files": {**state.files, firewalld.POLICY_FILES["in"]: Unknown(reason="I/O error")}}
    )
    plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    assert any("I/O error" in f.evidence for f in findings(plan, FindingKind.UNKNOWN))


def test_a_firewalld_whose_rules_are_in_iptables_is_judged_by_its_files() -> None:
    state = walled("a", "10.0.0.1", iptables=saved(), firewalld="public\n")
    action = firewalld_action(state)
    assert "firewall-cmd" in action.do
    assert action.undo != action.do
