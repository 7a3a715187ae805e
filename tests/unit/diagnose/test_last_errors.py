"""What stands under "Last error:" is NCCL's warning: it is read as where NCCL prints it itself."""

from __future__ import annotations

import pytest

from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.scanner.last_errors import as_warning

RAISED = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, "
    "{0}, NCCL version 2.28.9"
)
USAGE = "ncclInvalidUsage: This usually reflects invalid usage of NCCL library."
REMOTE = (
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting"
)
NO_INTERFACE = "Bootstrap : no socket interface found"
REFUSED = (
    "socketPollConnect: connect to 10.77.0.1<33493> returned Connection refused, exceeded error retry "
    "count after 35 attempts"
)


def _diagnosed(kind: str, name: str, *last: str, prefix: str = "[rank1]: ") -> Diagnosis:
    lines = (RAISED.format(kind), name, *last)
    return diagnose_lines({"log": [f"{prefix}{line}" for line in lines]})


@pytest.mark.parametrize("prefix", ["", "[rank1]: ", "gpu02: ", "2026-11-26T06:44:03Z stderr F "])
def test_a_warning_that_torch_repeats_is_the_cause(prefix: str) -> None:
    found = _diagnosed("invalid usage", USAGE, "Last error:", NO_INTERFACE, prefix=prefix)
    assert (found.label, found.confidence) == ("wrong-interface", "certain")
    assert found.lead is not None
    # The line is quoted as it stands in the log.
    assert found.lead.text.endswith(NO_INTERFACE)
    assert "WARN" not in found.lead.text


def test_the_kind_alone_has_the_causes_that_its_sources_have() -> None:
    found = _diagnosed("invalid usage", USAGE)
    labels = [candidate.label for candidate in found.candidates]
    assert found.confidence != "certain"
    assert {"duplicate-gpu", "wrong-interface", "nccl-version-mismatch"} <= set(labels)


def test_a_peer_that_was_not_reached_has_not_ended() -> None:
    found = _diagnosed("remote process exited or there was a network error", REMOTE)
    assert (found.label, found.confidence) == ("peer-died-timeout", "possible")
    assert found.candidates[1].label == "firewall-ports"
    refused = _diagnosed(
        "remote process exited or there was a network error", REMOTE, "Last error:", REFUSED
    )
    assert refused.label == "firewall-ports"


def test_a_line_is_a_warning_only_right_under_the_head() -> None:
    log = b"Last error:\n\nnone\nBootstrap : no socket interface found\n"
    begin = log.index(b"Bootstrap")
    assert as_warning(NO_INTERFACE, log, begin) == NO_INTERFACE
    assert as_warning("none", log, log.index(b"none")) == "none"
    head = b"[rank1]: Last error: \r\n"
    assert as_warning(f"[rank1]: {NO_INTERFACE}", head, len(head)) == (
        f"[rank1]: NCCL WARN {NO_INTERFACE}"
    )


XLA = (
    "jax.errors.JaxRuntimeError: INTERNAL: nccl_communicator.cc:412: NCCL operation ncclCommInitRank(&comm, "
    "2, id, 1, &config) failed: invalid usage (run with NCCL_DEBUG=WARN for details). Last NCCL warning(error) "
    "log entry (may be unrelated) 'Bootstrap : no socket interface found'."
)
TESTS = (
    "gpu02: Test NCCL failure common.cu:1005 'invalid usage (run with NCCL_DEBUG=WARN for details) / "
    "Bootstrap : no socket interface found'"
)


@pytest.mark.parametrize("line", [XLA, TESTS], ids=["XLA", "nccl-tests"])
def test_a_warning_that_stands_beside_the_kind_is_the_cause(line: str) -> None:
    found = diagnose_lines({"log": [line]})
    assert found.label == "wrong-interface"
    assert found.lead is not None
    assert "WARN Bootstrap" not in found.lead.text
