"""What is said of names: of the hosts file, the resolver and the host's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from remedy.plan import Fleet, Plan, make_plan, section_models
from remedy.probe import (
    File,
    LoginSession,
    Names,
)
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, record
from tests.unit.deploys.resolution_bench import HOSTS, LINES, NSSWITCH, RIGHT, two
from tests.unit.deploys.words_bench import (
    Run,
    Said,
    planned,
    run,
    said,
    written,
)

LONG = "programs that run keep the old order (with glibc before 2.33, until they are started again)"


def changed(hosts: Fleet, sections: Mapping[str, Any] = {}, **update: Any) -> Fleet:
    """Return a fleet in which facts of a and sections of the spec are others."""
    state = hosts.states["a"].model_copy(update=update)
    spec = hosts.spec.model_copy() if hasattr(hosts.spec, "model_copy") else hosts.spec
    models = section_models()
    known = {**spec.sections, **{name: models[name](**values) for name, values in sections.items()}}
    return Fleet(hosts.inventory, {**hosts.states, "a": state}, type(spec)(known), hosts.missing)


def names(hosts: Fleet, **update: Any) -> Fleet:
    known = hosts.states["a"].names
    assert isinstance(known, Names)
    return changed(hosts, names=known.model_copy(update=update))


def plan(remedy: str, hosts: Fleet) -> Plan:
    return make_plan(hosts, WHEN, only=remedy)


# ---- resolver

LATE = ("b: 10.9.9.9, expected 10.0.0.2",)
WRONG = {"b": ("10.9.9.9",)}
OTHERS = "is asked before the hosts file, and gives other addresses than the cluster's"


@pytest.mark.parametrize(
    ("order", "asked", "line"),
    [
        ("dns files", "dns", "hosts: dns files"),
        ("db [!UNAVAIL=return] dns files", "db, dns", "hosts: db [!UNAVAIL=return] dns files"),
        ("", "dns", "no line for hosts"),
    ],
)
def test_the_hosts_file_is_asked_first(order: str, asked: str, line: str) -> None:
    nsswitch = None
    if not order:
        nsswitch = File(path=NSSWITCH, real_path=NSSWITCH, exists=True, content=b"passwd: files\n")
    found = plan("resolver", two(WRONG, order=order, nsswitch=nsswitch))
    assert said(found) == [Said("drift", f"{asked} {OTHERS}", (f"{NSSWITCH}: {line}", *LATE), "")]
    (write,) = written(found)
    title = "have the hosts file asked first (/etc/nsswitch.conf)"
    assert write[:5] == (title, "medium", True, LONG, NSSWITCH)


def test_at_most_eight_answers_are_shown() -> None:
    hosts = [host_state(f"n{at}", f"10.0.0.{at}") for at in range(2, 12)]
    peers = {state.host: ("10.9.9.9",) for state in hosts}
    lines = "".join(f"10.0.0.{at} n{at}\n" for at in range(2, 12)).encode()
    text = b"hosts: dns files\n"
    files = {NSSWITCH: File(path=NSSWITCH, real_path=NSSWITCH, exists=True, content=text)}
    state = host_state("a", "10.0.0.1", hosts=lines, files=files)
    state = state.model_copy(update={"names": record(Names, peers=peers, order=("dns", "files"))})
    (found,) = said(plan("resolver", fleet(state, *hosts)))
    assert len(found.evidence) == 1 + 8


@pytest.mark.parametrize(
    ("real_path", "manage", "fix"),
    [
        (NSSWITCH, False, "Put `files` first in the line `hosts:` of /etc/nsswitch.conf."),
        *(("/etc/authselect/nsswitch.conf", manage,
           "Put `files` first in /etc/authselect/user-nsswitch.conf, then: authselect apply-changes")
          for manage in (True, False)),
    ],
)  # fmt: skip
def test_an_order_that_remedy_leaves_alone(real_path: str, manage: bool, fix: str) -> None:
    file = File(path=NSSWITCH, real_path=real_path, exists=True, content=b"hosts: dns files\n")
    found = plan(
        "resolver",
        changed(two(WRONG, order="dns files", nsswitch=file), {"resolver": {"manage": manage}}),
    )
    expected = Said("blocked", f"dns {OTHERS}", (f"{NSSWITCH}: hosts: dns files", *LATE), fix)
    assert said(found) == [expected]
    assert found.changes == ()


@pytest.mark.parametrize(
    ("order", "who", "service"),
    [
        ("dns files", "DNS", "dns"),
        ("myhostname files", "nss-myhostname", "myhostname"),
        ("mymachines dns files", "DNS", "dns"),
        ("libvirt myhostname files", "nss-myhostname", "myhostname"),
        ("ldap dns files", "DNS", "dns"),
    ],
)
def test_an_order_that_is_right_by_chance(order: str, who: str, service: str) -> None:
    assert said(plan("resolver", two(RIGHT, order=order))) == [
        Said(
            "report", f"{who} is asked before the hosts file", (f"{NSSWITCH}: hosts: {order}",),
            f"Put `files` before `{service}` in that line.",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    "first",
    ["resolve", "db", "libvirt_guest", "mdns4_minimal", "mdns6_minimal", "mdns_minimal", "files"],
)
def test_what_reads_the_hosts_file_itself_ends_the_search(first: str) -> None:
    assert said(plan("resolver", two(RIGHT, order=f"{first} dns files"))) == []


def test_what_else_the_resolver_says() -> None:
    found = names(
        two(RIGHT), resolver_options=("rotate", "inet6"), servers=("192.0.2.53", "192.0.2.54")
    )
    slow = changed(found, costs={"names": 2.0})
    assert said(plan("resolver", slow)) == [
        Said(
            "report", "/etc/resolv.conf has the option inet6: gethostbyname gives IPv6 addresses",
            ("/etc/resolv.conf: options rotate inet6",),
            "Remove it: glibc no longer supports it (resolv.conf(5)).",
        ),
        Said(
            "report", "looking up the names of the cluster is slow: no answer from a name server",
            (
                "2 names took 2.0 s, 0 of them were not asked in time",
                "/etc/resolv.conf: nameserver 192.0.2.53, nameserver 192.0.2.54",
            ),
            "Ask each server: getent -s dns hosts NAME. Remove a dead one from /etc/resolv.conf, or from what "
            "writes it (resolvectl status).",
        ),
    ]  # fmt: skip
    labels = [f.label for f in plan("resolver", slow).findings if f.host == "a"]
    assert labels == ["ipv6-issue", "hostname-unresolvable"]


@pytest.mark.parametrize("path", ["/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/host.conf"])
@pytest.mark.parametrize("manage", [True, False])
def test_files_that_only_some_can_read(path: str, manage: bool) -> None:
    hosts = two(RIGHT)
    closed = File(path=path, real_path=path, exists=True, content=b"hosts: files\n", mode=0o640)
    hosts = changed(
        hosts, {"resolver": {"manage": manage}}, files={**hosts.states["a"].files, path: closed}
    )
    found = plan("resolver", hosts)
    assert said(found) == [
        Said(
            "drift" if manage else "report",
            f"{path} has mode 0640: names resolve for root alone, others cannot read it",
            ("the resolver reads it as the user of each program; needs 0644",),
            "" if manage else f"Let everybody read it: chmod a+r {path}",
        )
    ]  # fmt: skip
    assert run(found) == [
        Run(
            f"let every user read {path}", "low", True, "", f"stat -L -c %a {path}", "640", "644",
            f"roots {path} && chmod 644 {path}", f"roots {path} && chmod 640 {path}",
        )
    ] * manage  # fmt: skip


# ---- hosts file


def settled(hosts: bytes = LINES, sections: Mapping[str, Any] = {}, **update: Any) -> Fleet:
    """Return a fleet in which remedy keeps no hosts file, so that what is wrong stays."""
    found = two(RIGHT, hosts=hosts)
    return changed(found, {"hosts_file": {"manage": False}, **sections}, **update)


LOOK = (
    "Check `hosts:` in /etc/nsswitch.conf: `files` must come first; and gai.conf(5), which sorts the "
    "answers."
)


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"peers": {**RIGHT, "b": ("127.0.1.1",)}}, Said(
            "blocked", "names resolve to loopback: b", ("b: 127.0.1.1, expected 10.0.0.2",), LOOK,
        )),
        ({"peers": {**RIGHT, "b": ("10.0.0.2", "::1")}}, None),
        ({"peers": {"a": ("fd00::1",), "b": ("fd00::2", "10.0.0.2")}, "user": "kim"}, Said(
            "blocked", "names resolve to an IPv6 address first for the user kim: a, b",
            ("a: fd00::1, expected 10.0.0.1", "b: fd00::2, 10.0.0.2, expected 10.0.0.2"), LOOK,
        )),
        ({"peers": {**RIGHT, "b": ()}}, Said(
            "blocked", "names do not resolve to the cluster address: b", ("b: no answer, expected 10.0.0.2",),
            LOOK,
        )),
        ({"peers": {**RIGHT, "b": ()}, "order": ("dns", "[x]", "db", "files")}, Said(
            "blocked", "names do not resolve to the cluster address: b", ("b: no answer, expected 10.0.0.2",),
            "Put `files` first in the line `hosts:` of /etc/nsswitch.conf, before dns db.",
        )),
        ({"peers": {"a": (), "b": ()}, "user": "kim"}, Said(
            "blocked", "names do not resolve to the cluster address for the user kim: a, b",
            ("a: no answer, expected 10.0.0.1", "b: no answer, expected 10.0.0.2"),
            "Check what keeps kim from reading /etc/hosts: namei -l, getfacl and ls -Z of it.",
        )),
        ({"peers": {"a": (), "b": ()}}, Said(
            "blocked", "names do not resolve to the cluster address: a, b",
            ("a: no answer, expected 10.0.0.1", "b: no answer, expected 10.0.0.2"), LOOK,
        )),
        ({"peers": {"a": RIGHT["a"]}}, Said(
            "unknown", "1 name not resolved within the probe's time", ("b",),
            "Check the DNS servers in /etc/resolv.conf: one may be dead.",
        )),
        ({"peers": {}}, Said(
            "unknown", "2 names not resolved within the probe's time", ("a", "b"),
            "Check the DNS servers in /etc/resolv.conf: one may be dead.",
        )),
    ],
)  # fmt: skip
def test_what_the_resolver_answers(update: dict[str, Any], expected: Said | None) -> None:
    found = said(
        plan("hosts_file", names(settled(sections={"resolver": {"manage": False}}), **update))
    )
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize("path", ["/run/nscd/socket", "/var/run/nscd/socket"])
def test_a_cache_that_answers(path: str) -> None:
    hosts = names(settled(), peers={**RIGHT, "b": ("10.9.9.9",)})
    hosts = changed(hosts, session=record(LoginSession, present=frozenset({path, "/x"})))
    (found,) = said(plan("hosts_file", hosts))
    assert found.fix == f"A cache answers ({path}): empty it with `nscd -i hosts`, or restart it."


def test_four_names_are_counted() -> None:
    more = [host_state(name, f"10.0.0.{at}") for at, name in enumerate("bcde", 2)]
    for wrong, which in (("bcd", "b, c, d"), ("bcde", "4 of the cluster's hosts")):
        peers = {s.host: (f"10.0.0.{at}",) for at, s in enumerate(more, 2)}
        peers |= dict.fromkeys(wrong, ("10.9.9.9",)) | {"a": ("10.0.0.1",)}
        lines = LINES + b"10.0.0.3 c\n10.0.0.4 d\n10.0.0.5 e\n"
        state = host_state("a", "10.0.0.1", hosts=lines, peers=peers)
        (found,) = said(planned("hosts_file", state, *more, manage=False))
        assert found.title == f"names do not resolve to the cluster address: {which}"
        assert len(found.evidence) == len(wrong)


@pytest.mark.parametrize(
    ("answer", "is_named"),
    [(("10.9.9.9", "10.0.0.1"), True), (("10.0.0.1", "10.9.9.9"), False), ((), True), (Unknown(reason="x"),
     False)],
)  # fmt: skip
def test_what_the_hosts_own_name_leads_to(answer: Any, is_named: bool) -> None:
    hosts = settled(sections={"hostname": {"manage": False}})
    identity = host_state("a", "10.0.0.1", running="old").identity
    hosts = changed(hosts, {}, identity=identity)
    listed = ", ".join(answer) if answer and is_named else "no answer"
    expected = Said(
        "blocked", "the host calls itself 'old', and that name does not lead to its cluster address first",
        (f"old: {listed}, expected 10.0.0.1",),
        "Add old to the line of 10.0.0.1 in /etc/hosts, or set hostname.manage: true.",
    )  # fmt: skip
    assert said(plan("hosts_file", names(hosts, local=answer))) == [expected] * is_named
    managed = changed(names(hosts, local=answer), {"hostname": {"manage": True}})
    assert said(plan("hosts_file", managed)) == []
    same = changed(
        names(hosts, local=answer), identity=host_state("a", "10.0.0.1", running="A").identity
    )
    assert said(plan("hosts_file", same)) == []


def test_what_cloud_init_and_the_inventory_have_against_it() -> None:
    cloud = File(
        path="/etc/cloud/cloud.cfg", real_path="/etc/cloud/cloud.cfg", exists=True,
        content=b"manage_etc_hosts: localhost\n",
    )  # fmt: skip
    hosts = two(RIGHT)
    hosts = changed(hosts, files={**hosts.states["a"].files, cloud.path: cloud})
    first = said(plan("hosts_file", hosts))[0]
    assert first == Said(
        "blocked", "cloud-init replaces /etc/hosts at each boot",
        ("/etc/cloud/cloud.cfg: manage_etc_hosts: localhost",),
        "Write `manage_etc_hosts: false` into /etc/cloud/cloud.cfg.d/99-hosts.cfg, then run the command again.",
    )  # fmt: skip
    assert said(plan("hosts_file", changed(hosts, {"hosts_file": {"manage": False}}))) == []


def test_a_cluster_address_that_is_not_there() -> None:
    hosts = settled()
    nodes = tuple(
        replace(node, data={"cluster_address": "10.0.7.7"}) if node.name == "a" else node
        for node in hosts.inventory.nodes
    )
    inventory = replace(hosts.inventory, nodes=nodes)
    hosts = Fleet(inventory, hosts.states, hosts.spec, hosts.missing)
    lines = File(path=HOSTS, real_path=HOSTS, exists=True, content=LINES)
    hosts = changed(hosts, files={**hosts.states["a"].files, HOSTS: lines})
    hosts = names(hosts, peers={"a": ("10.0.7.7",), "b": ("10.0.0.2",)})
    assert said(plan("hosts_file", hosts)) == [
        Said(
            "blocked", "a has no interface with 10.0.7.7, cluster_address in the inventory",
            ("its addresses: 10.0.0.1/24",),
            "Correct cluster_address in the inventory, or bring that interface up.",
        )
    ]  # fmt: skip
    blind = changed(hosts, network=Unknown(reason="no ip"))
    assert said(plan("hosts_file", blind)) == [
        Said("unknown", "whether a has its address 10.0.7.7 is not known", ("no ip",), "")
    ]
    labels = {f.label for f in plan("hosts_file", blind).findings if f.host == "a"}
    assert labels == {"wrong-interface"}


BLOCK = b"# BEGIN remedy\n10.0.0.1\ta\n10.0.0.2\tb\n# END remedy\n"


def test_what_is_wrong_with_the_file() -> None:
    text = b"127.0.0.1 localhost\n127.0.1.1 a\n10.9.9.9 b # old\n"
    found = plan("hosts_file", two(RIGHT, hosts=text))
    assert said(found) == [
        Said("drift", "/etc/hosts line 2 contradicts the inventory: maps to 127.0.1.1, but a is 10.0.0.1",
        ("127.0.1.1 a",
        ), ""),
        Said("drift", "/etc/hosts line 3 contradicts the inventory: maps to 10.9.9.9, but b is 10.0.0.2",
        ("10.9.9.9 b # old",), ""),
        Said("drift", "/etc/hosts lacks 2 hosts of the cluster", ("a", "b"), ""),
    ]  # fmt: skip
    (write,) = written(found)
    assert write[:5] == ("write the cluster's 2 hosts into /etc/hosts", "low", True, "", HOSTS)
    assert [f.label for f in found.findings if f.host == "a"] == [
        "loopback-hostname", "hostname-unresolvable", "hostname-unresolvable",
    ]  # fmt: skip


def test_hosts_that_left_and_a_block_that_was_edited() -> None:
    right = plan("hosts_file", two(RIGHT))
    (write,) = written(right)
    assert write.content is not None
    left = write.content.replace(b"# END remedy", b"10.0.0.9\tgone\n# END remedy")
    assert said(plan("hosts_file", two(RIGHT, hosts=left))) == [
        Said("drift", "/etc/hosts lists hosts that left the inventory", ("gone",), "")
    ]
    edited = write.content.replace(b"# END remedy", b"# a note\n# END remedy")
    assert said(plan("hosts_file", two(RIGHT, hosts=edited))) == [
        Said("drift", "the block in /etc/hosts was edited or is out of order", (), "")
    ]
    unread = changed(two(RIGHT, hosts=write.content), names=Unknown(reason="no getent"))
    assert said(plan("hosts_file", unread)) == [
        Said("unknown", "could not read how names resolve here", ("no getent",), "")
    ]
