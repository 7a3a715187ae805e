"""Keys, certificates and authorities that were withdrawn: what is said of each, and what is to be done."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from remedy.inventory import Node
from remedy.transport.refused import KeyRefusedError, explain_key
from remedy.trust import KeyState, ShownKey, SshServer

NAME = "192.0.2.12"
NODE = Node("gpu02", NAME)


@dataclass
class Keys:
    """Keys of a host, made by ssh-keygen.

    Args:
        folder: where they are.
    """

    folder: Path

    def make(self, name: str) -> None:
        """Make a pair of keys."""
        file = str(self.folder / name)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)

    def sign(self, *more: str) -> None:
        """Have the authority sign the key of the host."""
        words = ["ssh-keygen", "-q", "-s", "ca", "-I", "id", "-h", "-n", NAME, *more, "host.pub"]
        subprocess.run(words, check=True, cwd=self.folder)

    def text(self, name: str) -> str:
        """Return a public key as a line has it."""
        return " ".join((self.folder / name).read_text().split()[:2])

    def refused(self, shown: str, known: str, revoked_keys: Path | None = None) -> tuple[str, str]:
        """Return what is said of a key that a server shows, and the next step."""
        file = self.folder / "known_hosts"
        file.write_text(known)
        key = ShownKey(base64.b64decode(self.text(shown).split()[1]))
        server = SshServer(NAME, user_files=(file,), revoked_keys=revoked_keys)
        decision = server.judge(key)
        assert decision.state is not KeyState.KNOWN
        refused = KeyRefusedError(server, decision, key, "")
        error = explain_key(Path("inventory.py"), NODE, refused)
        assert "ssh-keygen -R" not in error.next_step, "its line is never what is to go"
        return error.message, error.next_step


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """A host's key, and an authority's."""
    keys = Keys(tmp_path)
    keys.make("host")
    keys.make("ca")
    return keys


def test_a_revoked_key_is_replaced_and_recorded(keys: Keys) -> None:
    known = f"{NAME} {keys.text('host.pub')}\n@revoked * {keys.text('host.pub')}\n"
    message, step = keys.refused("host.pub", known)
    assert "REVOKED" in message
    assert "known_hosts:2" in message
    assert "ssh-keygen -A" in step
    assert "remedy trust inventory.py --replace gpu02" in step


def test_the_key_under_a_certificate_by_a_revoked_authority_is_not_blamed(keys: Keys) -> None:
    keys.sign()
    known = f"@cert-authority * {keys.text('ca.pub')}\n@revoked * {keys.text('ca.pub')}\n"
    message, step = keys.refused("host-cert.pub", known)
    assert "a certificate by an authority that is REVOKED" in message
    assert "signed by an authority that holds" in step
    assert "ssh-keygen -A" not in step


def test_a_certificate_in_a_list_is_told_from_its_key_and_its_authority(keys: Keys) -> None:
    keys.sign("-z", "7")
    krl, what = keys.folder / "krl", keys.folder / "what"
    known = f"@cert-authority * {keys.text('ca.pub')}\n"
    said = {}
    for name, spec in (
        ("certificate", "serial: 7\n"),
        ("authority", f"key: {keys.text('ca.pub')}\n"),
        ("key", f"key: {keys.text('host.pub')}\n"),
    ):
        what.write_text(spec)
        words = ["ssh-keygen", "-q", "-k", "-f", str(krl), "-s", "ca.pub", str(what)]
        subprocess.run(words, check=True, cwd=keys.folder)
        said[name] = keys.refused("host-cert.pub", known, krl)
    assert "has a certificate that is REVOKED" in said["certificate"][0]
    assert "signed again" in said["certificate"][1]
    assert "by an authority that is REVOKED" in said["authority"][0]
    assert "ssh-keygen -A" in said["key"][1]


def test_a_list_that_cannot_be_read_blames_no_host(keys: Keys) -> None:
    known = f"{NAME} {keys.text('host.pub')}\n"
    message, step = keys.refused("host.pub", known, keys.folder / "gone")
    assert "counts as revoked" in message
    assert "RevokedHostKeys" in step
    assert "ssh-keygen" not in step


@pytest.mark.parametrize(
    ("signed", "shown", "words"),
    [
        (("-V", "-2d:-1d"), "host-cert.pub", "it has expired"),
        (("-n", "other"), "host-cert.pub", f"it is not for the name {NAME}"),
        ((), "host.pub", "it shows no certificate by the authority"),
    ],
)
def test_what_an_authority_does_not_vouch_for_is_to_be_signed(
    keys: Keys, signed: tuple[str, ...], shown: str, words: str
) -> None:
    keys.sign(*signed)
    message, step = keys.refused(shown, f"@cert-authority 192.0.2.* {keys.text('ca.pub')}\n")
    assert words in message
    assert f"ssh-keygen -s AUTHORITY -I {NAME} -h -n {NAME}" in step
    assert "remedy trust inventory.py --limit gpu02" in step
