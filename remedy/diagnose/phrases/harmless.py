"""Lines that have the words of a failure and report none: by the catalogue, or by their own wording."""

from __future__ import annotations

import re
from functools import cache

from remedy.diagnose.catalogue import Role, Symptom, catalogue, readings

_MEANT_WELL = re.compile(
    r"err=-3|Send termination request to `|\(ignored\)\s*$"
    # What Python's module of warnings prints.
    r"|\.py:\d{1,6}: \w{0,40}Warning: "
    r"|algbw|NCCL INFO|warnings?\.warn|harmless|errno: 97|timeout\(ms\)(?!.*tim(?:ed|ing) out)"
    r"|\bWARN(?:ING)?\b.{0,200}\b(?:using \w+|instead|skipping|ignoring|continuing)\b"
    r"|can (?:safely )?be (?:safely )?ignored|sub-?optimal|false[- ]positive"
    r"|\b(?:[Tt]reat(?:ing|ed)? it as|fall(?:ing|s)? back to|will be (?:ignored|skipped)|mode=abort)\b"
    r"|retry ?\((?P<try>\d+)/(?!(?P=try)\))\d+\)|could not find TensorRT|uv_loop_close failed"
    r"|loopback address as fallback|client socket cannot be|Invoked with (?:_raw_params|cmd)=|\bCOMMAND="
    r"|Producer process has been terminated before all shared CUDA tensors released"
    r"|\[preauth\]|sshd\[\d+\]: (?:Failed password|Invalid user|Disconnected)|OUT_OF_RANGE: End of sequence"
    r"|factory for plugin \w+ when one has already been registered"
    r"|(?:see all help / error messages|ha(?:ve|s) sent help message)|shm_unlink\(/?ucx_shm"
    r"|has failed to (?:shutdown the rendezvous|send a keep-alive heartbeat)"
    # torch's heartbeat, where the store left before it; its frames.
    r"|\[W\d{3,4} [\d:.]+ TCPStore\.cpp:|TCPStore server has shut down too early"
    r"|Exception raised from (?:recv|send)Bytes at|\bframe #\d+: ",
    re.IGNORECASE,
)


def is_harmless(line: str) -> bool:
    """Return whether a line is harmless by itself, whatever words it has.

    Args:
        line: of a log.
    """
    return bool(_MEANT_WELL.search(line)) or any(
        any(literal in line for literal in entry.literals) and entry.match(readings(line, (entry,)))
        for entry in _entries()
    )


@cache
def _entries() -> tuple[Symptom, ...]:
    """Return the entries of what is harmless wherever it stands."""
    return tuple(e for e in catalogue() if e.role is Role.HARMLESS and not e.near)
