"""The key that a server shows, and the certificate around it; cryptography reads and verifies both.

The rules for a host's certificate are OpenSSH's: sshkey_cert_check_host in sshkey.c, PROTOCOL.certkeys.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization.ssh import (
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
    serialize_ssh_public_key,
)

SUFFIX = "-cert-v01@openssh.com"
# How many strings a public key of each type has after its type, RFC 4253, 5656, 8709.
_KEY_STRINGS = {"ssh-ed25519": 1, "ssh-rsa": 2}
_ECDSA_STRINGS = 2
# Signatures of authorities that OpenSSH does not accept since 8.2: SHA-1 can be made to collide.
_WEAK_SIGNATURES = ("ssh-rsa", "ssh-dss")


@dataclass(frozen=True)
class ShownKey:
    """A key that a server has proved to have.

    Args:
        blob: the key as the server sent it, or a certificate around it.
    """

    blob: bytes

    @property
    def kind(self) -> str:
        """Its type."""
        return _strings(self.blob, 1)[0][0].decode("ascii", "backslashreplace")

    @property
    def is_certificate(self) -> bool:
        """Whether a certificate is around it."""
        return self.kind.endswith(SUFFIX)

    @property
    def line(self) -> str:
        """Type and key, as they are written in known_hosts."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """Type and SHA-256 fingerprint, as ``ssh-keygen -l`` shows it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"{self.kind} SHA256:{digest}"

    @cached_property
    def plain(self) -> ShownKey:
        """The key without its certificate.

        Raises:
            ValueError: the certificate cannot be read.
        """
        if not self.is_certificate:
            return self
        return ShownKey(_blob(serialize_ssh_public_key(self._certificate.public_key())))

    @cached_property
    def authority(self) -> bytes:
        """The key that the certificate names as its authority's.

        Raises:
            ValueError: the certificate cannot be read, or that key did not sign it.
        """
        try:
            self._certificate.verify_cert_signature()
            return _blob(serialize_ssh_public_key(self._certificate.signature_key()))
        except (InvalidSignature, UnsupportedAlgorithm, AssertionError) as error:
            raise ValueError("it is not signed by the key that it names") from error

    def objection(self, name: str, now: float) -> str:
        """Return why the certificate does not hold for a host now; "" where it does.

        Args:
            name: of the host, without its port.
            now: seconds since 1970.
        """
        certificate = self._certificate
        if certificate.type is not SSHCertificateType.HOST:
            return "it is a user's certificate"
        if now < certificate.valid_after:
            return "it is not valid yet"
        if now >= certificate.valid_before:
            return "it has expired"
        principals = certificate.valid_principals
        if principals and name.encode() not in principals:
            return f"it is not for the name {name}"
        if certificate.critical_options:
            return "it has a critical option, which no certificate of a host has"
        if self._signature_kind() in _WEAK_SIGNATURES:
            return "it is signed with SHA-1"
        return ""

    @cached_property
    def _certificate(self) -> SSHCertificate:
        try:
            certificate = load_ssh_public_identity(self.line.encode())
        except UnsupportedAlgorithm as error:
            raise ValueError(f"the certificate cannot be read: {error}") from error
        if not isinstance(certificate, SSHCertificate):
            raise ValueError("it is no certificate")
        return certificate

    def _signature_kind(self) -> str:
        """Return the algorithm of the authority's signature, which an RSA key does not settle."""
        plain = self.kind.removesuffix(SUFFIX)
        _, rest = _strings(self.blob, 2 + _KEY_STRINGS.get(plain, _ECDSA_STRINGS))
        _, rest = _strings(rest[8 + 4 :], 2)  # serial and type; identity and principals
        (*_, signature), _ = _strings(
            rest[8 + 8 :], 5
        )  # validity; three kinds of options; the authority
        return _strings(signature, 1)[0][0].decode("ascii", "backslashreplace")


def _strings(blob: bytes, count: int) -> tuple[list[bytes], bytes]:
    """Return the first strings of a message of ssh, and what comes after them (RFC 4251, section 5)."""
    strings = []
    for _ in range(count):
        size = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + size:
            raise ValueError("the key ends too early")
        strings.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    return strings, blob


def _blob(line: bytes) -> bytes:
    return base64.b64decode(line.split()[1])
