"""What NCCL warns of while it starts is not why it stops later."""

from __future__ import annotations

import pytest

from remedy.diagnose.endings.progress import failure_lines
from remedy.diagnose.logs import diagnose_lines

ATTENTION = "gpu01:22:22 [0] plugin/net.cc:229 (ncclNetPluginInit) NCCL ATTN Failed to initialize NET plugin IB"
COPY = "gpu01:22:22 [0] transport/rma_socket.cc:32 (init) NCCL WARN RMA/Socket : GDR Copy failed to load"
NETWORK = "gpu01:22:22 [0] NCCL INFO Using network Socket"
START = (
    "gpu01:22:22 [0] NCCL INFO [Rank 0] ncclCommInitRankConfig comm 0x49146830 rank 0 nranks 2 cudaDev 0 "
    "nvmlDev 0 busId 60 commId 0x4d9d51e2b5db3626 - Init START"
)


@pytest.mark.parametrize("further", [NETWORK, START])
def test_a_warning_of_nccl_before_it_went_on_is_no_failure(further: str) -> None:
    assert failure_lines(f"{ATTENTION}\n{COPY}") == [ATTENTION, COPY]
    assert failure_lines(f"{ATTENTION}\n{COPY}\n{further}") == []
    assert failure_lines(f"{ATTENTION}\n{further}\n{COPY}") == [COPY]


def test_a_failure_of_somebody_else_stays_one() -> None:
    line = "ERROR the loader failed"
    assert failure_lines(f"{line}\n{ATTENTION}\n{START}") == [line]


def test_a_start_that_stops_after_a_warning_is_a_hang() -> None:
    answer = diagnose_lines({"gpu01.log": [ATTENTION, NETWORK, START]})
    assert answer.label == "unknown"
    assert [candidate.label for candidate in answer.candidates][:1] == ["firewall-ports"]
    assert "while NCCL connected the hosts" in answer.notes[0]
