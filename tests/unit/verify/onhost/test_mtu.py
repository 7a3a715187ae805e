"""Packets that must not be cut: what is sent, and the kernel's own answers to it."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.verify.onhost import mtu as whole


@given(st.integers(0, 65535), st.integers(whole.HEADERS, 9000), st.integers(0, 65535))
def test_a_request_has_its_size_and_its_checksum(number: int, size: int, identity: int) -> None:
    packet = whole.packet(number, size, identity)
    assert len(packet) + 20 == size
    # RFC 1071: with its checksum in it, the sum of all words is all ones.
    words = struct.unpack(f"!{(len(packet) + 1) // 2}H", packet + b"\0" * (len(packet) % 2))
    total = sum(words)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_an_answer_or_none(data: bytes, raw: bool) -> None:
    got = whole.answered(data, raw, 7)
    assert got is None or 0 <= got <= 65535


def test_the_kernel_answers_whole_packets_over_the_loopback() -> None:
    said = whole.ask("127.0.0.1", {1: "127.0.0.1", 5: "127.0.0.2"}, time.monotonic() + 5)
    if said["reason"]:
        pytest.skip(said["reason"])
    assert said == {"narrow": [], "mute": [], "reason": ""}


@pytest.mark.parametrize("own", ["::1", "192.0.2.1"])
def test_who_cannot_ask_says_so(own: str) -> None:
    said = whole.ask(own, {1: "192.0.2.7"}, time.monotonic() + 1)
    assert said["reason"]
    assert (said["narrow"], said["mute"]) == ([], [])


def test_without_the_right_to_send_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*kind: Any) -> Any:
        raise PermissionError(1, f"Operation not permitted for {kind}")

    monkeypatch.setattr(socket, "socket", refused)
    said = whole.ask("127.0.0.1", {1: "127.0.0.1"}, time.monotonic() + 1)
    assert "Operation not permitted" in said["reason"]
