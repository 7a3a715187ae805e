"""Which name leads where first: what is repaired in the hosts file, in nsswitch.conf and in modes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remedy.deploys.hostname import HostnameSpec
from remedy.deploys.resolver import ResolverSpec
from remedy.plan import CommandAction, FileAction, FindingKind, Fleet, Plan, make_plan, promised
from remedy.probe import File, Names
from remedy.values import Unknown
from tests.unit.build import fleet, host_state, with_section
from tests.unit.plans import WHEN

HOSTS, NSSWITCH = "/etc/hosts", "/etc/nsswitch.conf"
LINES = b"127.0.0.1 localhost\n10.0.0.1 a\n10.0.0.2 b\n"
RIGHT = {"a": ("10.0.0.1",), "b": ("10.0.0.2",)}


def plan_of(found: Fleet, only: str | None = None) -> Plan:
    return make_plan(found, WHEN, only=only)


def two(
    answers: Mapping[str, tuple[str, ...]],
    *,
    hosts: bytes = LINES,
    order: str = "files dns",
    user: str = "",
    nsswitch: File | None = None,
    hosts_mode: int = 0o644,
    settings: ResolverSpec | None = None,
) -> Fleet:
    """Return a fleet in which the resolver of a gives these answers."""
    text = f"passwd: files\nhosts: {order}\n".encode()
    file = nsswitch or File(path=NSSWITCH, real_path=NSSWITCH, exists=True, content=text)
    closed = File(path=HOSTS, real_path=HOSTS, exists=True, content=hosts, mode=hosts_mode)
    state = host_state("a", "10.0.0.1", files={NSSWITCH: file, HOSTS: closed})
    names = Names(
        local=answers.get("a", ()),
        peers={**RIGHT, **answers},
        order=tuple(order.split()),
        user=user,
    )
    spec = with_section("resolver", settings or ResolverSpec())
    other = host_state("b", "10.0.0.2", hosts=LINES, peers=RIGHT)
    return fleet(state.model_copy(update={"names": names}), other, spec=spec)


def of_a(plan: Plan, *kinds: FindingKind) -> list[tuple[str, str]]:
    """Return label and title of what was found on a about names."""
    return [
        (f.label, f.title)
        for f in plan.findings
        if f.host == "a" and f.kind in kinds and f.remedy in ("hosts_file", "resolver")
    ]


def written(plan: Plan, path: str) -> bytes | None:
    for change in plan.for_host("a"):
        if isinstance(change.action, FileAction) and change.action.path == path:
            assert change.action.after is not None
            return plan.contents[change.action.after]
    return None


# --- both families ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "answer", "label"),
    [
        (b"::1 a\n", "::1", "loopback-hostname"),
        (b"fe80::1%eth0 a\n", "fe80::1", "loopback-hostname"),
        (b"fd00::1 a\n", "fd00::1", "ipv6-issue"),
        (b"2001:db8::1 a\n", "2001:db8::1", "ipv6-issue"),
    ],
)
def test_an_ipv6_line_that_comes_first_goes_and_the_other_names_on_it_stay(
    line: bytes, answer: str, label: str
) -> None:
    hosts = LINES + line.replace(b" a", b" a storage")
    found = two({"a": (answer, "10.0.0.1")}, hosts=hosts)
    plan = plan_of(found)
    content = written(plan, HOSTS)
    assert content is not None
    assert b"#remedy disabled# " + line.replace(b" a", b" a storage").strip() in content
    assert line.split()[0] + b"\tstorage\n" in content
    assert label in [label for label, _ in of_a(plan, FindingKind.DRIFT)]
    assert of_a(plan_of(promised(found, plan)), *FindingKind) == []


def test_an_ipv6_line_that_does_not_come_first_stays() -> None:
    found = two({"b": ("10.0.0.2", "fd00::2")}, hosts=LINES + b"fd00::2 b\n")
    content = written(plan_of(found), HOSTS)
    assert content is not None
    assert b"\nfd00::2 b\n" in content


def test_an_ipv6_answer_that_no_file_gives_blocks_once_the_file_is_right() -> None:
    found = two(RIGHT)
    settled = promised(found, plan_of(found))
    names = settled.states["a"].names
    assert isinstance(names, Names)
    wrong = names.model_copy(
        update={"peers": {**RIGHT, "a": ("fd00::1", "10.0.0.1")}, "user": "trainer"}
    )
    states = {**settled.states, "a": settled.states["a"].model_copy(update={"names": wrong})}
    plan = plan_of(Fleet(settled.inventory, states, settled.spec), only="hosts_file")
    assert plan.for_host("a") == ()
    ((label, title),) = of_a(plan, FindingKind.BLOCKED)
    assert label == "ipv6-issue"
    assert title == "names resolve to an IPv6 address first for the user trainer: a"


# --- who is asked first -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "answer", "first"),
    [
        ("dns files", ("10.9.9.9",), "files dns"),
        ("myhostname files dns", ("fd00::1", "10.0.0.1"), "files myhostname dns"),
        ("dns [!UNAVAIL=return] files", (), "files dns [!UNAVAIL=return]"),
        ("dns", ("10.9.9.9",), "files dns"),
        ("resolve [!UNAVAIL=return] files", ("10.9.9.9",), "files resolve [!UNAVAIL=return]"),
    ],
)
def test_the_hosts_file_is_put_first_where_another_service_answers_wrongly(
    order: str, answer: tuple[str, ...], first: str
) -> None:
    found = two({"a": answer}, order=order)
    plan = plan_of(found)
    assert written(plan, NSSWITCH) == f"passwd: files\nhosts: {first}\n".encode()
    assert of_a(plan, FindingKind.BLOCKED) == []
    assert of_a(plan_of(promised(found, plan)), *FindingKind) == []


@pytest.mark.parametrize(
    ("order", "answers", "hosts"),
    [
        ("dns files", RIGHT, LINES),
        # the file itself says so
        ("dns files", {"a": ("127.0.1.1",)}, LINES.replace(b"10.0.0.1 a", b"127.0.1.1 a")),
        # what is not in the file now, and asked of one who reads it
        ("resolve [!UNAVAIL=return] files", {"a": ()}, b"127.0.0.1 localhost\n"),
        ("mymachines files", {"b": ("10.9.9.9",)}, b"127.0.0.1 localhost\n"),
        ("files dns", {"b": ("10.9.9.9",)}, b"127.0.0.1 localhost\n"),
    ],
)
def test_an_order_that_is_not_to_blame_stays(
    order: str, answers: dict[str, tuple[str, ...]], hosts: bytes
) -> None:
    assert written(plan_of(two(answers, order=order, hosts=hosts)), NSSWITCH) is None


@pytest.mark.parametrize(
    ("real_path", "head", "manage"),
    [
        ("/etc/authselect/nsswitch.conf", b"", True),
        (NSSWITCH, b"# Generated by authselect on Mon\n", True),
        (NSSWITCH, b"", False),
    ],
)
def test_what_is_not_remedys_to_change_blocks(real_path: str, head: bytes, *, manage: bool) -> None:
    content = head + b"hosts: dns files\n"
    file = File(path=NSSWITCH, real_path=real_path, exists=True, content=content)
    found = two(
        {"a": ("10.9.9.9",)},
        order="dns files",
        nsswitch=file,
        settings=ResolverSpec(manage=manage),
    )
    plan = plan_of(found, only="resolver")
    assert plan.for_host("a") == ()
    assert len(of_a(plan, FindingKind.BLOCKED)) == 1


@pytest.mark.parametrize(
    ("local", "label"),
    [
        (("10.0.0.1",), None),
        (("::1", "10.0.0.1"), "loopback-hostname"),
        (("fd00::1",), "ipv6-issue"),
        ((), "hostname-unresolvable"),
    ],
)
def test_a_name_that_the_inventory_does_not_know_has_to_lead_to_the_address_too(
    local: tuple[str, ...], label: str | None
) -> None:
    """gloo asks for what the host calls itself; remedy is not to change that here."""
    state = host_state("a", "10.0.0.1", running="node17", hosts=LINES)
    names = Names(local=local, peers=RIGHT)
    for manage in (True, False):
        spec = with_section("hostname", HostnameSpec(manage=manage))
        other = host_state("b", "10.0.0.2", hosts=LINES, peers=RIGHT)
        found = fleet(state.model_copy(update={"names": names}), other, spec=spec)
        blocked = of_a(plan_of(found, "hosts_file"), FindingKind.BLOCKED)
        assert [label for label, _ in blocked] == ([label] if label and not manage else [])
        assert all("node17" in title for _, title in blocked)


def test_without_a_line_for_hosts_dns_is_asked_first_so_a_line_is_written() -> None:
    file = File(path=NSSWITCH, real_path=NSSWITCH, exists=True, content=b"passwd: files\n")
    found = two({"a": ("10.9.9.9",)}, order="", nsswitch=file)
    plan = plan_of(found)
    assert written(plan, NSSWITCH) == b"passwd: files\nhosts: files dns\n"
    assert of_a(plan_of(promised(found, plan)), *FindingKind) == []


# --- long names ---


def test_the_long_name_that_a_host_gives_itself_is_known_to_all() -> None:
    """c10d tells peers getfqdn() of rank 0."""
    hosts = b"127.0.0.1 localhost\n127.0.1.1 b.example.org b\n"
    a = host_state("a", "10.0.0.1", hosts=LINES, peers=RIGHT)
    b = host_state("b", "10.0.0.2", hosts=hosts, peers={**RIGHT, "b": ("127.0.1.1",)})
    found = fleet(a, b)
    plan = plan_of(found, "hosts_file")
    for name in ("a", "b"):
        (action,) = (c.action for c in plan.for_host(name))
        assert isinstance(action, FileAction)
        assert action.after is not None
        assert b"10.0.0.2\tb.example.org b\n" in plan.contents[action.after]
    settled = promised(found, plan)
    assert plan_of(settled, "hosts_file").changes == ()
    alone = Fleet(settled.inventory, {"a": settled.states["a"]}, settled.spec, {"b": "down"})
    assert plan_of(alone, "hosts_file").changes == ()


@pytest.mark.parametrize("word", ["b.$(id)", "b.{{7*7}}", "b.", "b.x;y", "b.c"])
def test_what_is_no_name_and_what_another_host_is_called_goes_to_nobody(word: str) -> None:
    hosts = b"10.0.0.2 " + word.encode() + b" b\n"
    states = [
        host_state("a", "10.0.0.1", hosts=LINES),
        host_state("b", "10.0.0.2", hosts=hosts),
        host_state("b.c", "10.0.0.3", hosts=LINES),
    ]
    plan = plan_of(fleet(*states), "hosts_file")
    for change in plan.for_host("a"):
        assert isinstance(change.action, FileAction)
        assert change.action.after is not None
        block = plan.contents[change.action.after].partition(b"# BEGIN remedy")[2]
        assert b"10.0.0.2\tb\n" in block


# --- for whom ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [HOSTS, NSSWITCH])
def test_a_file_that_root_alone_reads_is_opened(path: str) -> None:
    closed = File(
        path=NSSWITCH, real_path=NSSWITCH, exists=True, content=b"hosts: files\n", mode=0o640
    )
    found = (
        two({"a": (), "b": ()}, user="trainer", hosts_mode=0o600)
        if path == HOSTS
        else two(RIGHT, nsswitch=closed)
    )
    plan = plan_of(found)
    (action,) = (
        c.action
        for c in plan.for_host("a")
        if isinstance(c.action, CommandAction) and path in c.action.do
    )
    after = "644"
    assert (action.before, action.after) == ("600" if path == HOSTS else "640", after)
    assert action.do == f"roots {path} && chmod {after} {path}"
    assert action.undo == f"roots {path} && chmod {action.before} {path}"
    assert of_a(plan, FindingKind.BLOCKED, FindingKind.UNKNOWN) == []
    assert of_a(plan_of(promised(found, plan)), *FindingKind) == []


def test_a_mode_and_an_order_are_mended_in_one_run_where_root_asked() -> None:
    found = two({"a": ("10.9.9.9",)}, order="dns files", hosts_mode=0o600)
    plan = plan_of(found)
    assert written(plan, NSSWITCH) is not None
    assert plan_of(promised(found, plan)).for_host("a") == ()


def test_without_manage_the_modes_are_reported() -> None:
    closed = File(path=NSSWITCH, real_path=NSSWITCH, exists=True, content=b"", mode=0o600)
    plan = plan_of(two(RIGHT, nsswitch=closed, settings=ResolverSpec(manage=False)), "resolver")
    assert plan.for_host("a") == ()
    ((_, title),) = of_a(plan, FindingKind.REPORT)
    assert "mode 0600" in title


def test_names_that_could_not_be_asked_as_the_user_are_unknown() -> None:
    found = two(RIGHT)
    unknown = Unknown(reason="there is no user trainer on this host")
    states = {**found.states, "a": found.states["a"].model_copy(update={"names": unknown})}
    plan = plan_of(Fleet(found.inventory, states, found.spec), only="hosts_file")
    (finding,) = (f for f in plan.findings if f.kind is FindingKind.UNKNOWN and f.host == "a")
    assert "trainer" in f"{finding.title} {finding.evidence}"
