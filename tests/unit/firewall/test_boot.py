"""What nftables loads at boot: remedy's rule stands there only for chains that a file defines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall import iptables, nftables
from remedy.plan import FindingKind, Fleet, Plan, make_plan, promised
from remedy.probe import File, HostState, NftChain, NftRule, NftRuleset, Sysctls
from remedy.values import Unknown
from tests.unit.build import NO_FIREWALL, WHEN, fleet, host_state

MAIN = "/etc/nftables.conf"
RED_HAT = "/etc/sysconfig/nftables.conf"
INCLUDED = nftables.INCLUDED


def chain(table: str, name: str, family: str = "inet") -> NftChain:
    drop = NftRule(1, "", json.dumps([{"drop": None}]))
    return NftChain(family, table, name, "input", 0, "accept", (drop,))


def file(path: str, content: str | None, **more: Any) -> File:
    text = "" if content is None else content
    return File(
        path=path, real_path=path, exists=content is not None, content=text.encode(), **more
    )


def host(*chains: NftChain, files: dict[str, File | Unknown]) -> HostState:
    paths = (MAIN, RED_HAT, INCLUDED, *iptables.SAVED)
    state = host_state("a", "10.0.0.1", files={**{p: file(p, None) for p in paths}, **files})
    ruleset = NftRuleset(tables=(), chains=chains, sets=())
    live = {"net.ipv4.ip_local_port_range": "32768 60999"}
    return state.model_copy(
        update={
            "firewalls": NO_FIREWALL.model_copy(update={"nft": ruleset}),
            "sysctls": Sysctls(live=live, persisted=(), unread=()),
        }
    )


def whole(*chains: NftChain, **files: File | Unknown) -> Fleet:
    """Return a fleet of a, with these chains in force and these files, and of a host without a firewall."""
    places = {"main": MAIN, "red_hat": RED_HAT, "included": INCLUDED}
    known = {x.path if isinstance(x, File) else places[name]: x for name, x in files.items()}
    return fleet(host(*chains, files=known), host_state("b", "10.0.0.2"))


def plan_of(found: Fleet) -> Plan:
    return make_plan(found, WHEN, only="firewall")


def written(plan: Plan, path: str) -> str | None:
    """Return what the plan writes into a file; None when it leaves it alone."""
    for change in plan.for_host("a"):
        if change.action.kind == "file" and change.action.path == path:
            assert change.action.after is not None
            return plan.contents[change.action.after].decode()
    return None


def rules(text: str | None) -> list[str]:
    """Return the chains that a file of rules names."""
    assert text is not None
    lines = [line for line in text.splitlines() if line.startswith("insert rule ")]
    return [" ".join(line.split()[2:5]) for line in lines]


def table(family: str, name: str, *chains: str) -> str:
    body = "".join(
        f"\tchain {c} {{\n\t\ttype filter hook input priority 0;\n\t}}\n" for c in chains
    )
    return f"table {family} {name} {{\n{body}}}\n"


def kinds(plan: Plan) -> set[FindingKind]:
    return {finding.kind for finding in plan.findings if finding.host == "a"}


def test_a_rule_is_loaded_at_boot_only_for_a_chain_that_a_file_defines() -> None:
    """A file that names a chain which is not there would keep the whole ruleset from being loaded."""
    found = whole(
        chain("filter", "input"),
        chain("docker", "input"),
        main=file(MAIN, table("inet", "filter", "input")),
    )
    plan = plan_of(found)
    assert rules(written(plan, INCLUDED)) == ["inet filter input"]
    # Who finds the file has to see who keeps it.
    head = (written(plan, INCLUDED) or "").splitlines()[0]
    assert head.startswith("#")
    assert "remedy" in head
    assert (written(plan, MAIN) or "").endswith(f'}}\ninclude "{INCLUDED}"\n')
    (report,) = (f for f in plan.findings if f.kind is FindingKind.REPORT)
    assert "inet docker input" in "".join(report.evidence)
    assert "inet filter input" not in "".join(report.evidence)
    assert plan_of(promised(found, plan)).changes == ()


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        (table("inet", "filter", "input"), True),
        (table("inet", "filter", "other", "input"), True),
        (f"  {table('inet', 'filter', 'input')}", True),
        ("table inet filter {\n set s { type ipv4_addr; }\n chain input { }\n}\n", True),
        ("flush ruleset\n\ntable   inet   filter{\n chain input{ }\n}\n", True),
        (table("inet", "filter", "inputs"), False),
        (table("inet", "filter", "my.input"), False),
        (table("inet", "filter2", "input"), False),
        (table("ip", "filter", "input"), False),
        ("table inet filter { }\n" + table("inet", "nat", "input"), False),
        ("# " + table("inet", "filter", "input").replace("\n", "\n# "), False),
        ("table inet filter {\n # chain input { }\n}\n", False),
        ("", False),
    ],
)
def test_a_chain_is_defined_where_its_table_names_it(text: str, defined: bool) -> None:
    plan = plan_of(whole(chain("filter", "input"), main=file(MAIN, text)))
    assert (written(plan, INCLUDED) is not None) is defined
    assert (FindingKind.REPORT in kinds(plan)) is not defined


@pytest.mark.parametrize("head", ["table ip filter", "table filter"])
def test_ip_is_the_family_of_a_table_that_names_none(head: str) -> None:
    text = f"{head} {{\n chain input {{ }}\n}}\n"
    ours = plan_of(whole(chain("filter", "input", "ip"), main=file(MAIN, text)))
    assert rules(written(ours, INCLUDED)) == ["ip filter input"]


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("/etc/nftables.d/*.nft", "/etc/nftables.d/site.nft", True),
        ("/etc/nftables.d/site.nft", "/etc/nftables.d/site.nft", True),
        ("/etc/nftables.d/site.nft", "/etc/nftables.d/other.nft", False),
        ("/etc/nftables.d/*.nft", "/etc/nftables.d/site.conf", False),
        ("/etc/nftables.d/*.nft", INCLUDED, False),
    ],
)
def test_what_the_file_includes_defines_chains_as_well(
    pattern: str, path: str, found: bool
) -> None:
    plan = plan_of(
        whole(
            chain("filter", "input"),
            main=file(MAIN, f'include "{pattern}"\n'),
            other=file(path, table("inet", "filter", "input")),
        )
    )
    ours = written(plan, INCLUDED)
    assert (rules(ours) == ["inet filter input"] if ours else False) is found


def test_the_include_is_added_once_and_at_the_end_of_the_last_line() -> None:
    text = table("inet", "filter", "input").rstrip("\n")
    plan = plan_of(whole(chain("filter", "input"), main=file(MAIN, text)))
    assert written(plan, MAIN) == f'{text}\ninclude "{INCLUDED}"\n'
    there = file(MAIN, f'{text}\ninclude "{INCLUDED}"\n')
    again = plan_of(whole(chain("filter", "input"), main=there))
    assert written(again, MAIN) is None
    assert rules(written(again, INCLUDED)) == ["inet filter input"]


def test_the_file_of_red_hat_is_taken_where_there_is_no_other() -> None:
    text = table("inet", "filter", "input")
    plan = plan_of(whole(chain("filter", "input"), red_hat=file(RED_HAT, text)))
    assert written(plan, RED_HAT) is not None
    both = plan_of(
        whole(chain("filter", "input"), main=file(MAIN, text), red_hat=file(RED_HAT, text))
    )
    assert (written(both, MAIN) is not None, written(both, RED_HAT)) == (True, None)


@pytest.mark.parametrize("which", ["main", "red_hat"])
def test_files_that_could_not_be_read_are_unknown_with_the_reason(which: str) -> None:
    plan = plan_of(whole(chain("filter", "input"), **{which: Unknown(reason="Input/output error")}))
    (finding,) = (f for f in plan.findings if f.kind is FindingKind.UNKNOWN)
    assert "Input/output error" in finding.evidence
    assert written(plan, INCLUDED) is None


def test_a_file_of_rules_that_could_not_be_read_is_not_written_over() -> None:
    text = table("inet", "filter", "input")
    unread = Unknown(reason="Input/output error")
    plan = plan_of(whole(chain("filter", "input"), main=file(MAIN, text), included=unread))
    (finding,) = (f for f in plan.findings if f.kind is FindingKind.UNKNOWN)
    assert INCLUDED in finding.title
    assert "Input/output error" in finding.evidence
    assert (written(plan, INCLUDED), written(plan, MAIN)) == (None, None)


@pytest.mark.parametrize("locked", [MAIN, INCLUDED])
def test_a_file_that_must_not_be_changed_blocks_both_of_them(locked: str) -> None:
    texts = {MAIN: table("inet", "filter", "input"), INCLUDED: "# old\n"}
    files = {
        name: file(path, text, immutable=path == locked)
        for name, (path, text) in zip(("main", "included"), texts.items(), strict=True)
    }
    plan = plan_of(whole(chain("filter", "input"), **files))
    (finding,) = plan.blocked("a")
    assert locked in finding.title
    assert (written(plan, INCLUDED), written(plan, MAIN)) == (None, None)


def test_rules_of_before_go_when_nobody_needs_them_any_more() -> None:
    stale = file(INCLUDED, "insert rule inet gone input accept\n")
    text = file(MAIN, f'{table("inet", "filter", "input")}include "{INCLUDED}"\n')
    found = whole(main=text, included=stale)
    plan = plan_of(found)
    assert rules(written(plan, INCLUDED)) == []
    assert written(plan, MAIN) is None
    assert plan_of(promised(found, plan)).changes == ()
    assert plan_of(whole(main=text, included=file(INCLUDED, ""))).changes == ()
