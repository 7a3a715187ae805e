"""Recorded and made-up answers of the probe.

``data/probe/*.txt`` are the decoded answers of real lab hosts (Debian 12): ``lab-idle`` as it booted,
``lab-busy`` with ufw, nftables and old iptables rules, IPC of all kinds, two users of /dev/shm, a listener and
odd files, ``lab-firewalld`` with firewalld. The section ``nvidia-links`` came later: it repeats the answer of
``nvidia-processes``, since none of them had nvidia-smi. So did ``routing`` and ``queueing``, which repeat the
routes, rules and addresses of ``ip``, ``guards``: no run had ever been there, and
``nft-devices``, ``ipsets``, ``arptables-legacy`` and ``ebtables-legacy``: there was none of these; ``sshd`` and
``boot-mounts``: sshd had read its files, and there was no /etc/fstab; ``hosts-block``: none was expected.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path

import pytest

from remedy.probe import HostState, ProbeRequest, parse_probe

NONCE = "0" * 32
REQUEST = ProbeRequest(names=("gpu01", "gpu02", "gpu03"), nonce=NONCE)
# The shells that the probe has to run in.
SHELLS = (
    *("dash", "bash"),
    *(pytest.param(shell, marks=pytest.mark.full) for shell in ("busybox", "mksh", "ksh93")),
)
RECORDED = ("lab-idle", "lab-busy", "lab-firewalld")


def recorded(name: str) -> bytes:
    """Return a recorded answer, decoded."""
    return (Path(__file__).parent / "data" / "probe" / f"{name}.txt").read_bytes()


def packed(body: bytes, *, nonce: str = NONCE, complete: bool = True) -> str:
    """Return what a host prints for a decoded answer."""
    text = f"\nremedy-probe {nonce} base64\n{base64.b64encode(body).decode()}"
    return f"{text}\n\nremedy-probe {nonce} end\n" if complete else text


def section(
    name: str,
    content: bytes | str = b"",
    status: str = "ok",
    detail: str = "",
    *,
    nonce: str = NONCE,
) -> bytes:
    """Return one section as the script prints it."""
    content = content.encode() if isinstance(content, str) else content
    begin, end = (
        f"@{nonce} begin {name} 100.00\n",
        f"\n@{nonce} end {name} 100.25 {status} {detail}\n",
    )
    return begin.encode() + content + end.encode()


def parse(body: bytes, request: ProbeRequest = REQUEST, heard_at: int = 0) -> HostState:
    """Return the state that a decoded answer tells."""
    return parse_probe("gpu01", packed(body), request, heard_at)


@lru_cache(maxsize=8)
def state(name: str) -> HostState:
    """Return the state of a recorded answer."""
    return parse(recorded(name))


def replaced(
    body: bytes, name: str, content: bytes | str, status: str = "ok", detail: str = ""
) -> bytes:
    """Return a recorded answer with one section replaced."""
    start = body.index(f"@{NONCE} begin {name} ".encode())
    end = body.index(b"\n", body.index(f"\n@{NONCE} end {name} ".encode()) + 1) + 1
    return body[:start] + section(name, content, status, detail) + body[end:]
