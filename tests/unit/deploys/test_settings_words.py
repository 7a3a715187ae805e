"""What is said of kernel settings and IPsec, and which commands are run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from remedy.deploys.ipsec import policy_of
from remedy.deploys.ipv6 import Ipv6Spec
from remedy.deploys.rails import RailsSpec
from remedy.plan import Plan
from remedy.probe import Address, HostState, Kernel, Network, Sysctls
from tests.unit.build import fleet, record, with_section
from tests.unit.deploys import ipv6_bench, ports_bench, rails_bench
from tests.unit.deploys.ways_bench import LINK, PEER, host, routing
from tests.unit.deploys.words_bench import Run, Said, planned, planned_for, run, said, written

HOST = "gpu01"

# ---- rails

FLUX = "interfaces in one network answer for each other's addresses, or drop what comes in"
RAILS = "/etc/sysctl.d/90-remedy-rails.conf"


def rails_of(plan: Plan) -> list[Said]:
    return said(plan, HOST)


def evidence(*values: str) -> tuple[str, ...]:
    return tuple(f"{name} in 10.0.0.0/24: {text}" for name, text in zip("ab", values, strict=True))


PLAIN = "rp_filter 0, arp_announce 0, arp_ignore 0"


def test_rails_get_settings_of_their_own() -> None:
    plan = rails_bench.plan_of(live=rails_bench.settings(b_rp_filter="1"))
    assert rails_of(plan) == [
        Said("drift", FLUX, evidence(PLAIN, "rp_filter 1, arp_announce 0, arp_ignore 0"), "")
    ]
    (step,) = run(plan, HOST)
    key = "net.ipv4.conf"
    assert step == Run(
        f"set {key}.b.rp_filter = 2, {key}.all.arp_announce = 2, {key}.all.arp_ignore = 1", "medium", True, "",
        "cat -- /proc/sys/net/ipv4/conf/all/arp_announce /proc/sys/net/ipv4/conf/all/arp_ignore "
        "/proc/sys/net/ipv4/conf/b/rp_filter",
        "0\n0\n1", "2\n1\n2",
        "echo 2 >/proc/sys/net/ipv4/conf/b/rp_filter && echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce && "
        "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore",
        "echo 1 >/proc/sys/net/ipv4/conf/b/rp_filter && echo 0 >/proc/sys/net/ipv4/conf/all/arp_announce && "
        "echo 0 >/proc/sys/net/ipv4/conf/all/arp_ignore",
    )  # fmt: skip
    (write,) = written(plan, HOST)
    assert write.title == f"write {RAILS}, for the next boot"
    assert write.content == (
        b"# Written by remedy: each rail answers for its own address\n"
        b"net.ipv4.conf.b.rp_filter = 2\nnet.ipv4.conf.all.arp_announce = 2\nnet.ipv4.conf.all.arp_ignore = 1\n"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"live": rails_bench.settings(), "spec": RailsSpec(manage=False)}, Said(
            "report", FLUX, evidence(PLAIN, PLAIN),
            "Take `manage: false` out of the section rails of remedy.yaml.",
        )),
        ({"live": rails_bench.settings(all_arp_announce="2", all_arp_ignore="1")}, Said(
            "drift", "after a reboot, the rails will not answer for their own addresses",
            evidence(*["rp_filter 0, arp_announce 2, arp_ignore 1"] * 2), "",
        )),
        ({"live": {k: v for k, v in rails_bench.settings().items() if not k.endswith("b.arp_filter")}}, Said(
            "unknown", "settings of interfaces in one network were not read", ("net.ipv4.conf.b.arp_filter",),
            "",
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_rails(given: dict[str, Any], expected: Said) -> None:
    assert rails_of(rails_bench.plan_of(**given)) == [expected]


def test_what_keeps_rails_as_they_are() -> None:
    pair = (
        rails_bench.rail("a", "10.0.0.1", running=False),
        rails_bench.rail("b", "10.0.0.2", running=False),
    )
    assert rails_of(rails_bench.plan_of(*pair, live=rails_bench.settings())) == [
        Said(
            "blocked", "no carrier on a and b, so the rails stay as they are", evidence(PLAIN, PLAIN),
            "Repair the link, or take the interface down: ip link set dev INTERFACE down",
        )
    ]  # fmt: skip
    for value, number in (("1", 0), ("2", 0), ("3", 1), ("8", 1)):
        live = rails_bench.settings(a_arp_ignore=value)
        chosen = [f for f in rails_of(rails_bench.plan_of(live=live)) if f.kind == "blocked"]
        assert chosen == number * [
            Said(
                "blocked", "arp_ignore is above 2 on interfaces in one network", (f"a: arp_ignore {value}",),
                "Set net.ipv4.conf.all.arp_ignore and that of the interface to 1, where nothing needs more.",
            )
        ]  # fmt: skip
    filtered = rails_of(rails_bench.plan_of(live=rails_bench.settings(b_arp_filter="1")))
    assert filtered[0] == Said(
        "blocked", "arp_filter is on without routing rules for the addresses, so only one rail answers",
        ("b: arp_filter 1",),
        "Set net.ipv4.conf.*.arp_filter to 0, or route by source: ip rule add from ADDRESS table N",
    )  # fmt: skip


# ---- ports for new sockets

RANGE, RESERVED = "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports"


def ports(state: HostState, **settings: Any) -> list[Said]:
    return said(planned("port_range", state, **settings))


def test_what_is_said_of_a_range() -> None:
    assert ports(ports_bench.settings_host(), range="50000-60999") == [
        Said("drift", "new sockets get ports from 32768-60999, the spec says otherwise",
        (f"{RANGE} = 32768 60999",), "")
    ]  # fmt: skip
    assert ports(ports_bench.settings_host(live="50000 60999"), range="50000-60999") == [
        Said(
            "drift", "after a reboot, the ports for new sockets will be others",
            (f"{RANGE}: no file sets it, needs 50000 60999",), "",
        )
    ]  # fmt: skip
    files = {"/etc/sysctl.d/5.conf": f"{RANGE} = 40000 60999\n"}
    boots = ports_bench.settings_host(live="50000 60999", files=files)
    assert ports(boots, range="50000-60999")[0].evidence == (
        f"/etc/sysctl.d/5.conf:1: {RANGE} = 40000 60999, needs 50000 60999",
    )
    blind = ports_bench.settings_host()
    blind = blind.model_copy(update={"sysctls": Sysctls(live={}, persisted=(), unread=())})
    assert ports(blind, range="50000-60999") == [
        Said(
            "unknown",
            f"could not read {RANGE}",
            (),
            f"See that the probe can read it: sysctl {RANGE}",
        )
    ]


def test_what_is_said_of_reserved_ports() -> None:
    assert ports(ports_bench.settings_host(), reserve=("40000-40010",)) == [
        Said(
            "drift", "ports that the spec reserves are not reserved",
            (f"{RANGE} = 32768 60999", f"{RESERVED} = none"), "",
        )
    ]  # fmt: skip
    files = {"/etc/sysctl.d/5.conf": f"{RANGE} = 1024 65535\n"}
    (found,) = ports(ports_bench.settings_host(files=files, reserved="8080"))
    assert found.title == "the kernel may give ports that launchers need to outgoing connections"
    assert found.evidence[:3] == (
        f"{RANGE} = 32768 60999", f"after the next boot: {RANGE} = 1024 65535 (/etc/sysctl.d/5.conf:1)",
        f"{RESERVED} = 8080",
    )  # fmt: skip
    assert all(line.startswith("needed: ") for line in found.evidence[3:])


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ("1024-1123", ""), ("1024-1122", "1024-1122 are only 99 ports, fewer than 100"),
        ((1023, 2000), "a range lies between 1024 and 65535, the lower end first: 1023-2000"),
        ((60000, 65536), "a range lies between 1024 and 65535, the lower end first: 60000-65536"),
        ("60000-65535", ""), ((3000, 2000),
         "a range lies between 1024 and 65535, the lower end first: 3000-2000"),
    ],
)  # fmt: skip
def test_which_ranges_are_refused(bounds: Any, words: str) -> None:
    if not words:
        planned("port_range", ports_bench.settings_host(), range=bounds)
        return
    with pytest.raises(ValueError, match=words):
        planned("port_range", ports_bench.settings_host(), range=bounds)


# ---- IPv6


def test_what_is_said_of_ipv6() -> None:
    key = "net.ipv6.conf.{}.disable_ipv6"
    cure = "It does not cure c10d's warning about IPv6 network addresses: there a name does not resolve."
    off = said(
        planned("ipv6", ipv6_bench.settings_host({"all": "0", "default": "0"}), mode="disable")
    )
    assert off == [
        Said(
            "drift", "IPv6 is on, the spec says otherwise",
            tuple(f"{key.format(name)} = 0, needs 1" for name in ("all", "default")), cure,
        )
    ]  # fmt: skip
    on = said(
        planned("ipv6", ipv6_bench.settings_host({"all": "1", "default": "0"}), mode="enable")
    )
    assert on == [
        Said(
            "drift",
            "IPv6 is off, the spec says otherwise",
            (f"{key.format('all')} = 1, needs 0",),
            "",
        )
    ]
    boot = said(
        planned("ipv6", ipv6_bench.settings_host({"all": "1", "default": "1"}), mode="disable")
    )
    assert boot == [
        Said(
            "drift", "after a reboot, IPv6 will not be as the spec says",
            tuple(f"at boot: needs {key.format(name)} = 1" for name in ("all", "default")), "",
        )
    ]  # fmt: skip
    absent = ipv6_bench.settings_host({}).model_copy(
        update={"kernel": record(Kernel, command_line="quiet ipv6.disable=1")}
    )
    for settings in ({"mode": "enable"}, {"interfaces": {"eth0": "enable"}}):
        assert said(planned("ipv6", absent, **settings)) == [
            Said(
                "blocked", "the kernel has no IPv6 that could be switched on", ("ipv6.disable=1",),
                "Take ipv6.disable=1 from the kernel's command line and reboot.",
            )
        ]  # fmt: skip
    assert said(planned("ipv6", absent, mode="disable")) == []
    assert said(planned("ipv6", ipv6_bench.settings_host(), interfaces={"eth9": "disable"}), None) == [
        Said(
            "report", "no host has an interface 'eth9', which ipv6.interfaces names", ("there are: eth0",),
            "Correct the name in remedy.yaml.",
        )
    ]  # fmt: skip


def test_ssh_over_ipv6_keeps_it_on() -> None:
    fix = "Give ssh_hostname in the inventory as an IPv4 address."
    over = ipv6_bench.settings_host(environment=ipv6_bench.OVER_6)
    plan = planned("ipv6", over, mode="disable")
    assert said(plan)[1:] == [
        Said(
            "blocked", "the ssh connection itself runs over IPv6, so it is not switched off",
            ("SSH_CONNECTION=fd00::9 5000 fd00::1 22",), fix,
        )
    ]  # fmt: skip
    assert plan.changes == ()


def test_what_goes_with_ipv6_comes_back_with_it() -> None:
    state = ipv6_bench.settings_host({"all": "0", "default": "0", "eth0": "0"})
    own = tuple(
        Address(address=text, prefix=64, scope=scope)
        for text, scope in (("fd00::1", "global"), ("fe80::1", "link"))
    )
    assert isinstance(state.network, Network)
    (link,) = state.network.interfaces
    links = (link.model_copy(update={"addresses": (*link.addresses, *own)}),)
    state = state.model_copy(
        update={"network": state.network.model_copy(update={"interfaces": links})}
    )
    (step,) = run(planned("ipv6", state, mode="disable"))
    assert step[:4] == (
        "switch IPv6 off everywhere", "high", True,
        "takes 1 IPv6 address from the host, and ends connections over it",
    )  # fmt: skip
    assert step.undo.endswith(" && ip -6 address replace fd00::1/64 dev eth0")
    (step,) = run(planned("ipv6", ipv6_bench.settings_host(), interfaces={"eth0": "disable"}))
    assert step[:4] == ("switch IPv6 off on eth0", "medium", True, "")
    off = ipv6_bench.settings_host({"all": "1", "default": "1", "eth0": "1"})
    (step,) = run(planned("ipv6", off, mode="enable"))
    assert step[:4] == ("switch IPv6 on everywhere", "medium", True, "")


# ---- IPsec


@pytest.mark.parametrize(
    ("ends", "way", "word"), [((PEER, "10.0.0.1"), "in", "from"), (("10.0.0.1", PEER), "out", "to")]
)
def test_policies_of_ipsec(ends: tuple[str, str], way: str, word: str) -> None:
    place = f"src {ends[0]}/32 dst {ends[1]}/32 dir {way}"
    text = f"{place} action block priority 7 ptype main"
    state = host("a", "10.0.0.1", routing(LINK).model_copy(update={"ipsec": (policy_of(text),)}))
    shown, accept = (f"ip xfrm policy: {text}",), f'add to ipsec.accept in remedy.yaml: "{text}"'
    title = f"a policy of IPsec blocks packets {word} b"
    plan = planned("ipsec", state, host("b", PEER))
    assert said(plan) == [Said("drift", title, shown, "")]
    (step,) = run(plan)
    assert step[:4] == (f"remove the policy {text}", "medium", True, "")
    assert step.observe.endswith(
        f"{place} 2>/dev/null | grep -q 'action block'; then echo there; else echo absent; fi"
    )
    assert (step.before, step.after) == ("there", "absent")
    assert step.do == f"ip xfrm policy delete {place}"
    assert step.undo == f"ip xfrm policy add {place} action block priority 7"
    fix = f"If nothing needs it: ip xfrm policy delete {place}; if it is right, {accept}"
    assert said(planned("ipsec", state, host("b", PEER), repair=False)) == [
        Said("report", title, shown, fix)
    ]
    blurred = policy_of(text).model_copy(update={"plain": False})
    state = host("a", "10.0.0.1", routing(LINK).model_copy(update={"ipsec": (blurred,)}))
    assert said(planned("ipsec", state, host("b", PEER))) == [Said("blocked", title, shown, fix)]
    secret = policy_of(text).model_copy(update={"action": "ipsec"})
    state = host("a", "10.0.0.1", routing(LINK).model_copy(update={"ipsec": (secret,)}))
    assert said(planned("ipsec", state, host("b", PEER))) == [
        Said(
            "unknown", f"packets {word} b have to be encrypted, and whether both ends agree is not known",
            shown, f"If they do, {accept}",
        )
    ]  # fmt: skip


def test_how_the_address_of_ssh_is_known() -> None:
    fix = "Give ssh_hostname in the inventory as an IPv4 address."
    state = ipv6_bench.settings_host(environment={})
    assert [f.kind for f in said(planned("ipv6", state, mode="disable"))] == ["drift"]
    hosts = fleet(state, spec=with_section("ipv6", Ipv6Spec(mode="disable")))
    for address, expected in (
        ("login.example.org", Said(
            "unknown", "whether ssh itself runs over IPv6 is not known, so IPv6 is not switched off",
            ("there is no SSH_CONNECTION, and the inventory has a name",), fix,
        )),
        ("fe80::1%eth0", Said(
            "blocked", "the ssh connection itself runs over IPv6, so it is not switched off",
            ("ssh_hostname of a in the inventory",), fix,
        )),
    ):  # fmt: skip
        nodes = (replace(hosts.inventory.nodes[0], ssh_address=address),)
        made = replace(hosts, inventory=replace(hosts.inventory, nodes=nodes))
        assert said(planned_for("ipv6", made))[1:] == [expected]
