"""The hosts file of a host: what is mended, what only the user can mend, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from remedy.deploys.hosts_file import HostsFileSpec
from remedy.inventory import Inventory, Node
from remedy.plan import Finding, FindingKind, Fleet, Plan, make_plan, promised
from remedy.probe import File, HostState, Names
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, with_section

PATH = "/etc/hosts"
PLAIN = b"127.0.0.1\tlocalhost\n"
RIGHT = {"a": ("10.0.0.1",), "b": ("10.0.0.2",)}


def two(hosts: bytes = PLAIN, peers: Mapping[str, tuple[str, ...]] | None = None) -> Fleet:
    """Return a fleet of a and b, where a has this file and its resolver these answers."""
    a = host_state("a", "10.0.0.1", hosts=hosts, peers=RIGHT if peers is None else peers)
    return fleet(a, host_state("b", "10.0.0.2", peers=RIGHT))


def settled() -> Fleet:
    """Return the fleet as it is when the file of every host is right, and so is every answer."""
    before = two()
    return promised(before, plan_of(before))


def plan_of(found: Fleet) -> Plan:
    return make_plan(found, WHEN, only="hosts_file")


def changed(found: Fleet, **update: object) -> Fleet:
    """Return a fleet in which facts of the host a are others."""
    states = {**found.states, "a": found.states["a"].model_copy(update=update)}
    return Fleet(found.inventory, states, found.spec, found.missing)


def findings(plan: Plan, kind: FindingKind) -> list[Finding]:
    return [f for f in plan.findings if f.host == "a" and f.kind is kind]


def written(plan: Plan, host: str = "a") -> str:
    (change,) = plan.for_host(host)
    assert change.action.kind == "file"
    assert change.action.after is not None
    return plan.contents[change.action.after].decode()


def block(plan: Plan, host: str = "a") -> list[str]:
    """Return the lines of remedy's block, as they would be written."""
    lines = written(plan, host).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("# BEGIN remedy"))
    return lines[first + 1 : lines.index("# END remedy")]


# --- what is mended, and what blocks ----------------------------------------------------------------------


def test_a_right_file_with_right_answers_needs_nothing() -> None:
    plan = plan_of(settled())
    assert (plan.changes, plan.findings) == ((), ())


@pytest.mark.parametrize(
    ("content", "order", "named"),
    [
        (b"", ("files", "dns"), True),
        (b"\xef\xbb\xbf127.0.0.1 localhost\n", ("files", "dns"), True),
        (b"#127.0.0.1 localhost\n127.0.0.1 localhost.site # localhost\n", ("files", "dns"), True),
        (b"10.0.0.9 localhost\n", ("files", "dns"), True),
        (b"10.0.0.9 other\n127.0.0.1 a LocalHost\n", ("files", "dns"), False),
        (b"::1 ip6-localhost localhost\r\n", ("files", "dns"), False),
        (b"", ("files", "myhostname"), False),
        (b"", ("files", "resolve", "[!UNAVAIL=return]", "dns"), False),
    ],
)
def test_a_file_without_localhost_is_reported(
    content: bytes, order: tuple[str, ...], named: bool
) -> None:
    before = two(content)
    names = before.states["a"].names
    assert isinstance(names, Names)
    plan = plan_of(changed(before, names=names.model_copy(update={"order": order})))
    reports = [finding.title for finding in findings(plan, FindingKind.REPORT)]
    assert ["no line for localhost" in title for title in reports] == [True] * named


def test_a_wrong_answer_is_drift_while_the_file_is_wrong_and_blocks_once_it_is_right() -> None:
    """What the file causes goes away with it; what stays is decided elsewhere, by the user."""
    wrong = {"a": ("127.0.1.1",), "b": ("10.9.9.9",)}
    before = plan_of(two(peers=wrong))
    assert findings(before, FindingKind.BLOCKED) == []
    assert len(before.for_host("a")) == 1
    named = [
        f for f in findings(before, FindingKind.DRIFT) if f.evidence and "10.9.9.9" in f.evidence[0]
    ]
    assert len(named) == 1
    assert named[0].fix == ""
    after = plan_of(changed(settled(), names=Names(local=(), peers=wrong)))
    assert after.changes == ()
    assert findings(after, FindingKind.DRIFT) == []
    blocked = {f.label: f for f in findings(after, FindingKind.BLOCKED)}
    assert set(blocked) == {"loopback-hostname", "hostname-unresolvable"}
    for label, name, answer, address in (
        ("loopback-hostname", "a", "127.0.1.1", "10.0.0.1"),
        ("hostname-unresolvable", "b", "10.9.9.9", "10.0.0.2"),
    ):
        (evidence,) = blocked[label].evidence
        assert evidence.startswith(f"{name}: ")
        assert answer in evidence
        assert address in evidence
        assert "nsswitch.conf" in blocked[label].fix


@pytest.mark.parametrize("answers", [(), ("10.9.9.9", "10.0.0.2"), ("10.0.0.1",)])
def test_only_the_first_answer_counts(answers: tuple[str, ...]) -> None:
    plan = plan_of(changed(settled(), names=Names(local=(), peers={**RIGHT, "b": answers})))
    (finding,) = plan.blocked("a")
    assert finding.evidence[0].startswith("b: ")
    second = plan_of(
        changed(settled(), names=Names(local=(), peers={**RIGHT, "b": ("10.0.0.2", "10.9.9.9")}))
    )
    assert second.findings == ()


def test_names_without_an_answer_in_time_are_unknown() -> None:
    plan = plan_of(changed(settled(), names=Names(local=(), peers={"a": ("10.0.0.1",)})))
    (finding,) = findings(plan, FindingKind.UNKNOWN)
    assert finding.evidence == ("b",)
    assert "resolv.conf" in finding.fix


@pytest.mark.parametrize(
    ("fact", "place"),
    [({"names": Unknown(reason="no getent")}, "no getent"), ({"files": {}}, PATH)],
)
def test_what_could_not_be_read_is_unknown_and_changes_nothing(
    fact: dict[str, object], place: str
) -> None:
    plan = plan_of(changed(settled(), **fact))
    (finding,) = findings(plan, FindingKind.UNKNOWN)
    assert place in f"{finding.title} {finding.evidence}"
    assert plan.for_host("a") == ()


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("127.0.1.1 a", "loopback-hostname"),
        ("10.9.9.9 b", "hostname-unresolvable"),
    ],
)
def test_a_line_that_contradicts_is_drift_with_its_number(line: str, label: str) -> None:
    plan = plan_of(two(PLAIN + f"{line} # why\n".encode()))
    (finding,) = (f for f in findings(plan, FindingKind.DRIFT) if f.evidence == (f"{line} # why",))
    assert finding.label == label
    assert "line 2" in finding.title
    assert PATH in finding.title


def test_hosts_that_the_block_lacks_and_hosts_that_left_are_named() -> None:
    right = settled().states["a"].file(PATH)
    assert isinstance(right, File)
    old = right.content.replace(b"10.0.0.2\tb\n", b"10.0.0.7\tgone\n10.0.0.8\tanother\n")
    plan = plan_of(two(old))
    drift = [f.evidence for f in findings(plan, FindingKind.DRIFT)]
    assert ("b",) in drift
    assert ("another", "gone") in drift
    assert ("a",) not in drift
    assert "gone" not in written(plan)


def test_hosts_that_other_lines_name_rightly_are_not_said_to_be_lacking() -> None:
    plan = plan_of(two(PLAIN + b"10.0.0.1 a\n10.0.0.2 B # theirs\n"))
    (finding,) = findings(plan, FindingKind.DRIFT)
    assert "not remedy's" in finding.title
    assert finding.evidence == ("a", "b")
    # The lines stay, and the block names both as well: it is kept right, those are not.
    assert "10.0.0.2 B # theirs" in written(plan)
    assert block(plan) == ["10.0.0.1\ta", "10.0.0.2\tb"]


def test_of_hosts_that_the_block_lacks_those_that_no_line_names_are_apart() -> None:
    plan = plan_of(two(PLAIN + b"10.0.0.1 a\n"))
    drift = {f.title: f.evidence for f in findings(plan, FindingKind.DRIFT)}
    assert drift[f"{PATH} lacks 1 host of the cluster"] == ("b",)
    assert [e for t, e in drift.items() if "not remedy's" in t] == [("a",)]


def test_a_block_that_was_edited_is_put_right() -> None:
    right = settled().states["a"].file(PATH)
    assert isinstance(right, File)
    plan = plan_of(two(right.content.replace(b"10.0.0.1\ta\n", b"10.0.0.1\ta\n# mine\n")))
    (finding,) = findings(plan, FindingKind.DRIFT)
    assert PATH in finding.title
    assert written(plan).encode() == right.content


def test_without_manage_the_file_stays_and_wrong_answers_block() -> None:
    spec = with_section("hosts_file", HostsFileSpec(manage=False))
    wrong = host_state("a", "10.0.0.1", peers={**RIGHT, "b": ("10.9.9.9",)})
    plan = plan_of(fleet(wrong, host_state("b", "10.0.0.2", peers=RIGHT), spec=spec))
    assert plan.changes == ()
    (finding,) = plan.blocked("a")
    assert "10.9.9.9" in finding.evidence[0]


# --- the address of the host itself ------------------------------------------------------------------------


def with_addresses(state: HostState, ssh: str, cluster: str | None = None) -> Fleet:
    node = Node(
        name="a", ssh_address=ssh, data={} if cluster is None else {"cluster_address": cluster}
    )
    inventory = Inventory(path=Path("inventory.py"), nodes=(node,))
    return Fleet(inventory, {"a": state}, two().spec)


def test_a_host_without_a_cluster_address_blocks_with_the_reason() -> None:
    plan = plan_of(with_addresses(host_state("a", "169.254.0.1"), "gateway.example.org"))
    (finding,) = plan.blocked("a")
    assert finding.label == "wrong-interface"
    assert "a" in finding.title
    assert "cluster_address" in finding.fix
    assert "cluster.subnet" in finding.fix


def test_an_address_that_no_interface_has_blocks_with_those_it_has() -> None:
    plan = plan_of(with_addresses(host_state("a", "10.0.0.1"), "10.0.0.1", "10.7.7.7"))
    (finding,) = plan.blocked("a")
    assert finding.label == "wrong-interface"
    assert "10.7.7.7" in finding.title
    assert "10.0.0.1/24" in finding.evidence[0]
    assert "cluster_address" in finding.fix


def test_whether_it_has_its_address_is_unknown_where_the_network_is() -> None:
    blind = host_state("a", "10.0.0.1").model_copy(update={"network": Unknown(reason="no ip")})
    plan = plan_of(with_addresses(blind, "10.0.0.1", "10.0.0.1"))
    (finding,) = (f for f in findings(plan, FindingKind.UNKNOWN) if f.label == "wrong-interface")
    assert "10.0.0.1" in finding.title
    assert finding.evidence == ("no ip",)


# --- the names of the block --------------------------------------------------------------------------------


def test_a_host_has_its_name_and_its_short_name_unless_two_share_it() -> None:
    states = [
        host_state(name, f"10.0.0.{n}")
        for n, name in enumerate(("a.x.org", "b.x.org", "B.y.org", "c"), 1)
    ]
    plan = plan_of(fleet(*states))
    assert block(plan, "c") == [
        "10.0.0.1\ta.x.org a",
        "10.0.0.2\tb.x.org",
        "10.0.0.3\tB.y.org",
        "10.0.0.4\tc",
    ]


def test_the_own_long_name_stays_the_first_one_and_those_of_others_do_not_come_in() -> None:
    plan = plan_of(two(PLAIN + b"10.0.0.1 a.example.org a\n10.0.0.2 b.example.org b\n"))
    assert block(plan) == ["10.0.0.1\ta.example.org a", "10.0.0.2\tb"]


def test_a_host_that_was_not_looked_at_keeps_its_entry_unless_the_inventory_names_another() -> None:
    here = settled().states
    known = fleet(here["a"], absent=("b",))
    assert plan_of(known).changes == ()
    nodes = (
        known.inventory.nodes[0],
        Node(name="b", ssh_address="x", data={"cluster_address": "10.0.0.9"}),
    )
    named = Fleet(
        Inventory(path=Path("i.py"), nodes=nodes), known.states, known.spec, {"b": "down"}
    )
    assert "10.0.0.9\tb" in block(plan_of(named))


def test_a_host_whose_address_nobody_knows_has_no_entry() -> None:
    nodes = (Node(name="a", ssh_address="10.0.0.1"), Node(name="b", ssh_address="b.example.org"))
    a = host_state("a", "10.0.0.1")
    found = Fleet(Inventory(path=Path("i.py"), nodes=nodes), {"a": a}, fleet(a).spec, {"b": "down"})
    assert block(plan_of(found)) == ["10.0.0.1\ta"]


@pytest.mark.parametrize(
    ("text", "is_replaced"),
    [("manage_etc_hosts: true\n", True), ("manage_etc_hosts: false\n", False), ("", False)],
)
def test_a_file_that_cloud_init_replaces_at_each_boot_is_blocked(
    text: str, is_replaced: bool
) -> None:
    path = "/etc/cloud/cloud.cfg"
    file = File(path=path, real_path=path, exists=True, content=text.encode())
    before = two()
    files = {**before.states["a"].files, path: file}
    blocked = findings(plan_of(changed(before, files=files)), FindingKind.BLOCKED)
    titles = [finding.title for finding in blocked]
    assert ("cloud-init replaces /etc/hosts at each boot" in titles) is is_replaced
