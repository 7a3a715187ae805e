"""What each firewall says where it cannot be opened, or not for good: the words that an operator reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from remedy.firewall import firewalld, iptables, nftables, ufw
from remedy.firewall.boot.armed import PacketQuestion
from remedy.firewall.boot.walls import armed
from remedy.firewall.iptables import IptablesTable
from remedy.firewall.step import Amendment, FileStep, Note, Opening
from remedy.firewall.walls import walls_of
from remedy.plan import FindingKind
from remedy.probe import Firewalls, HostState, NftChain, Unit
from remedy.values import Unknown
from tests.unit.firewall.firewall_bench import (
    FIREWALLD,
    OPENING,
    TRAFFIC,
    UFW_LIVE,
    UFW_RULES,
    WAY,
    file,
    saved,
    walled,
)

LOST = Unknown(reason="Input/output error")
LATER_RULES = "After a reboot run `remedy check` again, or add the rules to what loads the others."
LATER_RULE = "After a reboot run `remedy check` again, or add the rule to what loads the others."
CHAIN = NftChain("inet", "filter", "input", "input", 0, "drop", ())


def host(files: Mapping[str, bytes | Unknown], **walls: object) -> HostState:
    state = walled("a", "10.0.0.1", **walls)  # type: ignore[arg-type]
    known = {p: x if isinstance(x, Unknown) else file(p, x) for p, x in files.items()}
    return state.model_copy(update={"files": {**state.files, **known}})


def unknown(title: str) -> Note:
    return Note(FindingKind.UNKNOWN, title, ("Input/output error",))


@pytest.mark.parametrize("path", iptables.SAVED)
def test_saved_rules_that_could_not_be_read(path: str) -> None:
    found = iptables.propose(host({path: LOST}), IptablesTable("nft", saved()), OPENING)
    assert found.notes == (unknown(f"could not read {path}"),)
    assert [type(step).__name__ for step in found.steps] == ["CommandStep"]
    assert found.independent


@pytest.mark.parametrize(
    ("variant", "name"), [("nft", "iptables"), ("legacy", "iptables (legacy tables)")]
)
def test_rules_that_nothing_saves(variant: str, name: str) -> None:
    table = IptablesTable(variant, saved())
    found = iptables.propose(host({}), table, OPENING)
    assert found.notes == (
        Note(
            FindingKind.REPORT,
            f"what loads the rules of {name} at boot is not known, so remedy's are only in force",
            ("none of /etc/iptables/rules.v4, /etc/sysconfig/iptables is there",),
            LATER_RULES,
        ),
    )
    for opening in (Opening(targets=OPENING.sources, target_ports=OPENING.ports), OPENING):
        assert len(iptables.propose(host({}), table, opening).notes) == 1
    assert iptables.propose(host({}), table, Opening()) == Amendment(independent=True)
    path = iptables.SAVED[0]
    assert iptables.propose(host({path: b""}), table, OPENING).notes == ()


@pytest.mark.parametrize(
    ("opening", "title"),
    [
        (OPENING, "let the cluster's hosts in by a chain REMEDY-PEERS, called first in INPUT"),
        (
            Opening(targets=OPENING.sources, target_ports=OPENING.ports),
            "let the cluster's hosts be reached by a chain REMEDY-PEERS-OUT, called first in OUTPUT",
        ),
        (
            Opening(OPENING.sources, OPENING.ports, OPENING.sources, OPENING.ports),
            (
                "let the cluster's hosts in by a chain REMEDY-PEERS, called first in INPUT, and be reached by "
                "a chain REMEDY-PEERS-OUT, called first in OUTPUT"
            ),
        ),
    ],
)
def test_the_step_of_iptables_names_its_chains(opening: Opening, title: str) -> None:
    found = iptables.propose(host({}), IptablesTable("legacy", saved()), opening)
    assert [step.title for step in found.steps] == [f"iptables (legacy tables): {title}"]
    chain = iptables.INCOMING
    ours = saved(chain.jump, *iptables.accepts(chain.name, OPENING.incoming))
    back = iptables.propose(host({}), IptablesTable("nft", ours), Opening())
    assert [step.title for step in back.steps] == ["take remedy's rules out of iptables"]


def test_ufw_s_file_that_cannot_be_used() -> None:
    table = IptablesTable("nft", UFW_LIVE)
    assert ufw.propose(host({ufw.RULES: LOST}), table, OPENING) == Amendment(
        notes=(unknown("could not read /etc/ufw/user.rules"),)
    )
    foreign = Note(
        FindingKind.BLOCKED,
        "/etc/ufw/user.rules is not a file of rules as ufw writes it",
        fix="Check `ufw status verbose`, or run: ufw reset",
    )
    assert ufw.propose(host({ufw.RULES: b"x\n"}), table, OPENING) == Amendment(notes=(foreign,))


@pytest.mark.parametrize(
    ("opening", "title"),
    [
        (OPENING, "let the cluster's hosts in, ahead of the user's rules"),
        (
            Opening(OPENING.sources, OPENING.ports, OPENING.sources, OPENING.ports),
            "let the cluster's hosts in and be reached, ahead of the user's rules",
        ),
    ],
)
def test_the_steps_of_ufw_are_its_file_and_what_is_in_force(opening: Opening, title: str) -> None:
    first, second = ufw.propose(
        host({ufw.RULES: UFW_RULES}), IptablesTable("nft", UFW_LIVE), opening
    ).steps
    assert first.title == f"ufw: {title} (/etc/ufw/user.rules)"
    assert second.title == "ufw: the same rules in force, without a reload"
    content = ufw.edit_rules(UFW_RULES, opening)
    assert content is not None
    gone = ufw.propose(host({ufw.RULES: content}), IptablesTable("nft", UFW_LIVE), Opening())
    assert [step.title for step in gone.steps] == ["ufw: drop remedy's rules (/etc/ufw/user.rules)"]


@pytest.mark.parametrize("path", firewalld.FILES)
def test_files_of_firewalld_that_could_not_be_read(path: str) -> None:
    found = firewalld.propose(host({path: LOST}), FIREWALLD, OPENING)
    assert found == Amendment(notes=(unknown("could not read remedy's files of firewalld"),))


@pytest.mark.parametrize(
    ("opening", "title"),
    [
        (OPENING, "let the cluster's hosts in by a policy 'remedy' ahead of all zones, and reload"),
        (
            Opening(OPENING.sources, OPENING.ports, OPENING.sources, OPENING.ports),
            (
                "let the cluster's hosts in and be reached by policies 'remedy' and 'remedy-out' ahead of all "
                "zones, and reload"
            ),
        ),
    ],
)
def test_the_step_of_firewalld_names_its_policies(opening: Opening, title: str) -> None:
    (step,) = firewalld.propose(host({}), FIREWALLD, opening).steps
    assert step.title == f"firewalld: {title}"
    there = {
        p: t.encode() for p, t in zip(firewalld.FILES, firewalld.texts_of(OPENING), strict=True)
    }
    (back,) = firewalld.propose(host(there), FIREWALLD, Opening()).steps
    assert back.title == "firewalld: remove the policy 'remedy', and reload"


def test_nftables_rules_that_nothing_loads() -> None:
    found = nftables.propose_saved(host({}), [CHAIN], OPENING)
    places = "/etc/nftables.conf or /etc/sysconfig/nftables.conf"
    report = Note(
        FindingKind.REPORT,
        "nothing known loads these nftables rules at boot, so remedy's rule lasts until the next boot",
        (f"chain inet filter input is not in {places}",),
        LATER_RULE,
    )
    assert found == Amendment(notes=(report,))
    assert nftables.propose_saved(host({}), [], OPENING) == Amendment()


@pytest.mark.parametrize("path", nftables.MAIN_FILES)
def test_what_nftables_loads_that_could_not_be_read(path: str) -> None:
    found = nftables.propose_saved(host({path: LOST}), [CHAIN], OPENING)
    assert found == Amendment(notes=(unknown("could not read what nftables loads at boot"),))
    assert nftables.propose_saved(host({path: LOST}), [], OPENING) == Amendment()


MAIN = b"table inet filter {\n chain input { }\n}\n"


def test_the_file_of_remedy_s_rules_that_could_not_be_read() -> None:
    main: dict[str, bytes | Unknown] = {"/etc/nftables.conf": MAIN, nftables.INCLUDED: LOST}
    found = nftables.propose_saved(host(main), [CHAIN], OPENING)
    assert found == Amendment(notes=(unknown("could not read /etc/nftables.d/remedy.nft"),))
    assert nftables.propose_saved(host(main), [CHAIN], Opening()) == Amendment()


def test_the_steps_for_the_next_boot_name_their_files() -> None:
    found = nftables.propose_saved(host({"/etc/nftables.conf": MAIN}), [CHAIN], OPENING)
    assert [step.title for step in found.steps] == [
        "write the same rules into /etc/nftables.d/remedy.nft",
        "include it at the end of /etc/nftables.conf, which is loaded at boot",
    ]
    there = {"/etc/nftables.conf": MAIN, nftables.INCLUDED: b"old\n"}
    back = nftables.propose_saved(host(there), [CHAIN], Opening())
    assert [step.title for step in back.steps] == ["empty /etc/nftables.d/remedy.nft"]


def test_direct_rules_are_put_back_by_each_reload() -> None:
    direct = b'<direct><rule ipv="ipv4" chain="INPUT">-j DROP</rule></direct>'
    state = host(
        {firewalld.DIRECT_FILE: direct},
        firewalld="running",
        nft=FIREWALLD,
        iptables=saved("-A INPUT -p tcp -j DROP", policy="ACCEPT"),
    )
    assert isinstance(state.firewalls, Firewalls)
    (wall,) = [
        wall
        for wall in walls_of(state, state.firewalls, TRAFFIC, WAY)
        if wall.name == "firewalld's direct rules"
    ]
    assert wall.propose is not None
    note = Note(
        FindingKind.BLOCKED,
        "firewalld puts its direct rules ahead of everything, and again after each reload",
        ("kept in /etc/firewalld/direct.xml",),
        "Remove the rule: firewall-cmd --direct --get-all-rules, then firewall-cmd --permanent --direct "
        "--remove-rule with its words, and firewall-cmd --reload.",
    )
    outgoing = Opening(targets=OPENING.sources, target_ports=OPENING.ports)
    assert wall.propose(OPENING) == wall.propose(outgoing) == Amendment(notes=(note,))
    assert wall.propose(Opening()) == Amendment()


# --- what only the next boot starts --------------------------------------------------------------------------


def booting(
    files: Mapping[str, bytes | Unknown], *services: str, ufw_on: bool = False
) -> HostState:
    units = {
        f"{name}.service": Unit(
            name=f"{name}.service", load="loaded", active="inactive", enabled="enabled"
        )
        for name in services
    }
    return host(files, ufw=ufw_on or None).model_copy(update={"units": units})


def proposed(state: HostState, opening: Opening = OPENING) -> Amendment:
    (wall,) = armed(state, PacketQuestion(TRAFFIC, WAY), ())
    assert wall.propose is not None
    return wall.propose(opening)


def titles(steps: Iterable[object]) -> list[str]:
    return [step.title for step in steps if isinstance(step, FileStep)]


UFW = {
    "/etc/default/ufw": b'DEFAULT_INPUT_POLICY="DROP"\n',
    "/etc/ufw/before.rules": b"*filter\nCOMMIT\n",
    "/etc/ufw/after.rules": b"*filter\nCOMMIT\n",
    ufw.RULES: UFW_RULES,
}


def test_a_file_of_the_next_boot_is_written_once() -> None:
    path, text = "/etc/iptables/rules.v4", saved().encode()
    state = booting({path: text}, "netfilter-persistent")
    assert titles(proposed(state).steps) == [
        f"write remedy's rules into {path}, which is loaded at boot"
    ]
    assert proposed(state).present is None
    again = proposed(booting({path: iptables.edit_saved(text, OPENING)}, "netfilter-persistent"))
    assert again == Amendment(OPENING)


def test_ufw_of_the_next_boot_is_opened_in_its_file() -> None:
    found = proposed(booting(UFW, "ufw", ufw_on=True))
    assert titles(found.steps) == [
        "write remedy's rules into /etc/ufw/user.rules, which is loaded at boot"
    ]
    both = Opening(OPENING.sources, OPENING.ports, OPENING.sources, OPENING.ports)
    for opening in (OPENING, both):
        content = ufw.edit_rules(UFW_RULES, opening)
        assert content is not None
        there = booting({**UFW, ufw.RULES: content}, "ufw", ufw_on=True)
        assert proposed(there, opening) == Amendment(opening)
    foreign = proposed(booting({**UFW, ufw.RULES: b"*filter\nCOMMIT\n"}, "ufw", ufw_on=True))
    assert foreign == Amendment(notes=(ufw.FOREIGN,))


ZONE = {
    "/etc/firewalld/firewalld.conf": b"DefaultZone=public\n",
    "/etc/firewalld/zones/public.xml": b'<zone><service name="ssh"/></zone>\n',
}
TEXTS = {p: t.encode() for p, t in zip(firewalld.FILES, firewalld.texts_of(OPENING), strict=True)}


def test_firewalld_of_the_next_boot_is_opened_in_its_files() -> None:
    found = proposed(booting(ZONE, "firewalld"))
    assert titles(found.steps) == [
        f"write {path}, which is loaded at boot" for path in firewalld.FILES[:2]
    ]
    assert found.present is None
    there = {**ZONE, **{path: text for path, text in TEXTS.items() if text}}
    assert proposed(booting(there, "firewalld")) == Amendment(OPENING)


@pytest.mark.parametrize("path", firewalld.FILES)
def test_files_of_firewalld_for_the_next_boot_that_could_not_be_read(path: str) -> None:
    found = proposed(booting({**ZONE, path: LOST}, "firewalld"))
    assert found == Amendment(notes=(unknown("could not read remedy's files of firewalld"),))


def test_only_addresses_of_ipv4_are_hosts_of_remedy_s_set() -> None:
    ipset = b"<ipset><entry>10.0.0.2</entry><entry>fd00::2</entry><entry>10.0.0.4/30</entry><entry/></ipset>"
    there = {**ZONE, **TEXTS, firewalld.IPSET_FILE: ipset}
    assert proposed(booting(there, "firewalld")).present == OPENING
