"""The decision about a server's key is OpenSSH's own: both are asked, with the same files, at real servers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from remedy.errors import HostKeyError
from remedy.transport.connections import Transport
from remedy.transport.keys import KeyReader
from remedy.transport.reader import load_inventory
from remedy.transport.script import Script
from remedy.trust import KeyState
from tests.hostile.sshd import Case, Servers, start_servers
from tests.lab.conftest import _no_leftovers, clusters  # noqa: F401  (a fixture)

pytestmark = pytest.mark.lab

LIST, KRL = "RevokedHostKeys {folder}/revoked", "RevokedHostKeys {folder}/krl"
CASES = (
    Case("nothing known", ""),
    Case("plain", "{host} {ed}\n"),
    Case("of another type only", "{host} {rsa}\n"),
    Case("several types, one changed", "{host} {ed_other}\n{host} {ec}\n"),
    Case("several types, all changed", "{host} {ed_other}\n{host} {ec_other}\n"),
    Case("the right one among changed ones", "{host} {ed_other}\n{host} {ed}\n"),
    Case("another type than the server has", "{host} {ed}\n", 2200),
    Case("changed", "{host} {ed_other}\n"),
    Case("revoked", "@revoked {host} {ed}\n"),
    Case("revoked and known", "{host} {ed}\n@revoked * {ed}\n"),
    Case("known and revoked before", "@revoked * {ed}\n{host} {ed}\n{host} {rsa}\n"),
    Case("revoked by the machine", "{host} {ed}\n", system="@revoked * {ed}\n"),
    Case("another key revoked", "{host} {ed}\n@revoked * {ed_other}\n"),
    Case("revoked for another host", "{host} {ed}\n@revoked other.example {ed}\n"),
    Case("revoked, with the name hashed", "{host} {ed}\n@revoked {host} {ed}\n", hashed=True),
    Case("revoked at a port, by the bare name", "{place} {ed}\n@revoked {host} {ed}\n", 2222),
    Case("revoked by the bare name, known by it", "{host} {ed}\n@revoked {host} {ed}\n", 2222),
    Case("known to the machine", "", system="{host} {ed}\n"),
    Case("changed for the user, known to the machine", "{host} {ed_other}\n", system="{host} {ed}\n"),
    Case("hashed", "{host} {ed}\n", hashed=True),
    Case("hashed and changed", "{host} {ed_other}\n", hashed=True),
    Case("hashed, at a port", "{place} {ed}\n", 2222, hashed=True),
    Case("wildcard", "* {ed}\n"),
    Case("wildcard of a port", "[*]:2222 {ed}\n", 2222),
    Case("wildcard of another port", "[*]:2223 {ed}\n", 2222),
    Case("question mark", "{host}? {ed}\n"),
    Case("negated", "*,!{host} {ed}\n"),
    Case("negated before", "!{host},* {ed}\n"),
    Case("only negated", "!other.example {ed}\n"),
    Case("negated at a port", "*,!{place} {ed}\n", 2222),
    Case("among several names", "a.example,{host},b.example {ed}\n"),
    Case("port", "{place} {ed}\n", 2222),
    Case("the bare name at a port", "{host} {ed}\n", 2222),
    Case("the bare name at a port, changed there", "{place} {ed_other}\n{host} {ed}\n", 2222),
    Case("the name with a port at port 22", "[{host}]:22 {ed}\n"),
    Case("a key of another port", "[{host}]:2222 {ed}\n"),
    Case("alias", "the-alias {ed}\n", 2222, config="HostKeyAlias the-alias"),
    Case("alias, known by its name alone", "{place} {ed}\n", 2222, config="HostKeyAlias the-alias"),
    Case("a comment and a broken line", "# {host} {ed}\n{host} ssh-ed25519 AAAA\n\n  {host}\t{ed} comment\n"),
    Case("the name of the type is wrong", "{host} ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIAAA\n{host} {ed}\n"),
    Case("an unknown marker", "@trusted {host} {ed}\n"),
    Case("two markers", "@revoked @cert-authority {host} {ed}\n{host} {ed}\n"),
    Case("a list of revoked keys", "{host} {ed}\n", config=LIST),
    Case("a list of revoked keys, another type", "{host} {rsa}\n", config=LIST),
    Case("a list of revoked keys that is gone", "{host} {ed}\n", config="RevokedHostKeys {folder}/gone"),
    Case("a revocation list", "{host} {ed}\n", config=KRL),
    Case("a revocation list, another type", "{host} {rsa}\n", config=KRL),
    Case("a revocation list with the authority", "@cert-authority * {ca}\n", 2201, config=KRL),
    Case("authority", "@cert-authority {place} {ca}\n", 2201),
    Case("authority of the bare name", "@cert-authority {host} {ca}\n", 2201),
    Case("authority by wildcard", "@cert-authority * {ca}\n", 2201),
    Case("authority, hashed", "@cert-authority {place} {ca}\n", 2201, hashed=True),
    Case("authority, negated", "@cert-authority *,!{place} {ca}\n", 2201),
    Case("another authority", "@cert-authority * {ca_other}\n", 2201),
    Case("another authority, and the key known", "@cert-authority * {ca_other}\n{place} {ed}\n", 2201),
    Case("authority, no certificate", "@cert-authority * {ca}\n", 2222),
    Case("authority, no certificate, key known", "@cert-authority * {ca}\n{place} {ed}\n", 2222),
    Case("authority, no certificate, key changed", "@cert-authority * {ca}\n{place} {ed_other}\n", 2222),
    Case("authority, certificate, key changed", "@cert-authority * {ca}\n{place} {ed_other}\n", 2201),
    Case("the authority as a key", "{place} {ca}\n", 2201),
    Case("a key as its authority", "@cert-authority * {ed}\n", 2201),
    Case("expired", "@cert-authority * {ca}\n", 2202),
    Case("expired, and the key known", "@cert-authority * {ca}\n{place} {ed}\n", 2202),
    Case("another principal", "@cert-authority * {ca}\n", 2203),
    Case("not yet valid", "@cert-authority * {ca}\n", 2204),
    Case("a critical option", "@cert-authority * {ca}\n", 2205),
    Case("signed with SHA-1", "@cert-authority * {ca_rsa}\n", 2206),
    Case("an RSA authority", "@cert-authority * {ca_rsa}\n", 2207),
    Case("an RSA key, by an Ed25519 authority", "@cert-authority * {ca}\n", 2207),
    Case("a principal that is a pattern", "@cert-authority * {ca}\n", 2208),
    Case("no principal", "@cert-authority * {ca}\n", 2209),
    Case("a certificate of a user", "@cert-authority * {ca}\n", 2210),
    Case("authority and an alias", "@cert-authority the-alias {ca}\n", 2211, config="HostKeyAlias the-alias"),
    Case("revoked authority", "@cert-authority * {ca}\n@revoked * {ca}\n", 2201),
    Case("revoked authority, and the key known", "{place} {ed}\n@revoked * {ca}\n", 2201),
    Case("revoked authority, another type known", "{place} {ec}\n@revoked * {ca}\n", 2201),
    Case("revoked key of a certificate", "@cert-authority * {ca}\n@revoked * {ed}\n", 2201),
    Case("a list with the authority", "@cert-authority * {ca}\n", 2201, config=LIST),
)  # fmt: skip


@pytest.fixture(scope="module")
def servers(
    _no_leftovers: None,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("keys")
    with clusters(folder) as make:
        yield start_servers(make(count=1), "gpu01", folder)


def decisions(
    servers: Servers, cases: tuple[Case, ...]
) -> tuple[dict[str, bool], dict[str, KeyState]]:
    """Whether remedy connects to the server of each case, all of them in one run, and what `trust` shows."""
    lines = ["from pathlib import Path"]
    hosts = []
    for number, case in enumerate(cases):
        data = {
            "ssh_hostname": f"case{number}",
            "ssh_port": case.port,
            "ssh_config_file": str(servers.config(case)),
        }
        with (servers.folder / case.name.replace(" ", "-") / "ssh_config").open("a") as file:
            file.write(f"HostName {servers.address}\n")
        hosts.append((f"case{number}", data))
    # Of its own: Python would take another that this process has read for it.
    inventory = servers.folder / f"inventory-{len(cases)}.py"
    inventory.write_text("\n".join((*lines, f"hosts = {hosts!r}\n")))
    loaded = load_inventory(inventory)
    transport = Transport(loaded)
    outputs = transport.run({name: Script("true", 10) for name, _ in hosts})
    transport.close()
    result = {}
    for number, case in enumerate(cases):
        error = outputs[f"case{number}"].error
        assert error is None or isinstance(error, HostKeyError), (case.name, error)
        result[case.name] = error is None
    keys = KeyReader(loaded).read(loaded.names)
    return result, {case.name: host.state for case, host in zip(cases, keys, strict=True)}


# One of each kind, for the run that is made often.
USUAL = (
    "nothing known",
    "plain",
    "of another type only",
    "several types, one changed",
    "changed",
    "revoked and known",
    "known and revoked before",
    "revoked by the machine",
    "revoked, with the name hashed",
    "known to the machine",
    "hashed, at a port",
    "wildcard of a port",
    "negated before",
    "negated at a port",
    "the bare name at a port",
    "alias",
    "a list of revoked keys",
    "authority",
    "authority, no certificate",
    "authority, certificate, key changed",
    "expired, and the key known",
    "another principal",
    "signed with SHA-1",
    "revoked authority, and the key known",
)


def test_each_kind_of_decision_is_openssh_s_own(servers: Servers) -> None:
    chosen = tuple(case for case in CASES if case.name in USUAL)
    assert len(chosen) == len(USUAL)
    compare(servers, chosen)


@pytest.mark.full
def test_each_decision_is_openssh_s_own(servers: Servers) -> None:
    compare(servers, CASES)


def compare(servers: Servers, cases: tuple[Case, ...]) -> None:
    """Have remedy, `trust` and OpenSSH decide, and require one decision."""
    ours, read = decisions(servers, cases)
    with ThreadPoolExecutor(8) as pool:
        asked = pool.map(servers.openssh_connects, cases)
    theirs = dict(zip((case.name for case in cases), asked, strict=True))
    assert set(theirs.values()) == {True, False}
    words = {True: "connects", False: "refuses"}
    differing = [
        f"{name}: remedy {words[ours[name]]}, OpenSSH {words[theirs[name]]}"
        for name in ours
        if ours[name] != theirs[name]
    ]
    assert differing == []
    assert {name for name, state in read.items() if state is KeyState.KNOWN} == {
        name for name, connects in ours.items() if connects
    }
    assert {read[name] for name in read} == {*KeyState} - {KeyState.SILENT}
