"""What the gateways of a host say of its keys together: the worst counts, and no gateway against another."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import ChangedKeyError, RemedyError, UnreachableError
from remedy.inventory import Inventory, Node
from remedy.spec import SshSpec
from remedy.transport.gateways.asking import Login, Seen
from remedy.transport.gateways.keys import GatewayKeys
from remedy.transport.gateways.routes import Branch, Routes
from remedy.trust import HostKeys, KeyState, ShownKey

HEAD = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"
ONE, OTHER = (("10.0.0.1", ShownKey(HEAD + letter * 32)) for letter in (b"a", b"b"))
NEW, KNOWN = Seen(KeyState.NEW, lines=(ONE,)), Seen(KeyState.KNOWN)
SILENT = Seen(KeyState.SILENT, "ssh: connect to host 10.0.0.1 port 22: Connection refused")
DEAD = UnreachableError(
    "gpu1: its gateway head2 says nothing of its keys: refused", next_step="Look."
)


@pytest.fixture
def keys() -> GatewayKeys:
    nodes = (Node("gpu1", "10.0.0.1"), Node("gpu2", "10.0.0.2"))
    branches = (
        Branch(("head1", "head2"), ("gpu1", "inner")),
        Branch(("inner",), ("gpu2",)),
    )
    return GatewayKeys(Routes(Inventory(Path("inventory.py"), nodes), branches), SshSpec(connect=7))


def together(keys: GatewayKeys, **answers: Seen | RemedyError) -> HostKeys:
    return keys._of_host("gpu1", answers)


def test_a_key_goes_to_the_gateways_that_lack_it(keys: GatewayKeys) -> None:
    host = together(keys, head1=KNOWN, head2=NEW)
    assert (host.state, host.detail) == (KeyState.NEW, "to head2")
    assert host.lines == {"head2": (ONE,)}
    assert host.fingerprints == (ONE[1].fingerprint,)
    assert together(keys, head1=NEW, head2=NEW).detail == "to head[1-2]"
    assert together(keys, head1=KNOWN, head2=KNOWN).lines == {}


def test_of_several_states_the_worst_is_the_hosts(keys: GatewayKeys) -> None:
    changed, revoked = Seen(KeyState.CHANGED, lines=(ONE,)), Seen(KeyState.REVOKED, lines=(ONE,))
    assert together(keys, head1=NEW, head2=changed).state is KeyState.CHANGED
    withdrawn = together(keys, head1=changed, head2=revoked)
    assert (withdrawn.state, withdrawn.lines) == (KeyState.REVOKED, {})


def test_gateways_that_see_different_keys_are_not_believed(keys: GatewayKeys) -> None:
    host = together(keys, head1=NEW, head2=Seen(KeyState.NEW, lines=(OTHER,)))
    assert (host.state, host.lines) == (KeyState.SILENT, {})
    assert isinstance(host.error, ChangedKeyError)
    assert "its gateways see different ssh host keys" in host.error.message
    assert ONE[1].fingerprint in host.error.message
    assert OTHER[1].fingerprint in host.error.message


def test_a_gateway_that_does_not_reach_a_host_is_named(keys: GatewayKeys) -> None:
    for missing in (SILENT, DEAD):
        host = together(keys, head1=NEW, head2=missing)
        assert (host.state, host.detail) == (KeyState.NEW, "to head1; head2 did not reach it")
    unreached = together(keys, head1=SILENT, head2=DEAD)
    assert unreached.error is not None
    assert "Connection refused" in unreached.error.message
    assert together(keys, head1=DEAD, head2=SILENT).error is DEAD


def test_a_key_that_no_gateway_could_read_is_not_recorded(keys: GatewayKeys) -> None:
    host = together(keys, head1=Seen(KeyState.NEW), head2=Seen(KeyState.NEW))
    assert (host.state, host.lines) == (KeyState.SILENT, {})
    assert host.error is not None
    assert "its key could not be read through head[1-2]" in host.error.message


def test_a_gateway_behind_another_is_reached_through_it(keys: GatewayKeys) -> None:
    login = Login("root", 2222, 7)
    first, inner = keys._way("head1", login), keys._way("inner", login)
    assert first[-3:] == ["--", "head1", "sh -s"]
    assert inner[:-1] == first[:-1]
    assert inner[-1].startswith("ssh -oForwardAgent=no ")
    assert inner[-1].endswith("-l root -p 2222 -- inner 'sh -s'")
