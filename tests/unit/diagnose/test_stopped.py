"""A service that was stopped on request: who seeks it later shows no failure of the run."""

from __future__ import annotations

from remedy.diagnose.logs import diagnose_lines

STEPS = [f"step {n} gradient 313" for n in range(1, 9)]
STOP = "114:M 26 Nov 2026 07:48:19.558 # User requested shutdown..."
SERVER = [
    "114:M 26 Nov 2026 07:47:59.576 * Ready to accept connections",
    *STEPS,
    STOP,
    "114:M 26 Nov 2026 07:48:19.558 # Redis is now ready to exit, bye bye...",
]
LOST = (
    "[2026-11-26 07:48:{}: WARNING/MainProcess] consumer: Connection to broker lost. "
    "Trying to re-establish the connection... (network:ConnectionError)"
)
REFUSED = [
    "[2026-11-26 07:48:21,637: ERROR/MainProcess] consumer: Cannot connect to redis://10.0.0.1:6379/0: Refused",
    "Error 111 connecting to 10.0.0.1:6379. Connection refused..",
    "Trying again in 4.00 seconds... (2/100)",
]
RAISED = [
    "Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.11/site-packages/redis/connection.py", line 1601, in _connect',
    "    sock.connect(socket_address)",
    "ConnectionRefusedError: [Errno 111] Connection refused",
]


def test_a_worker_that_seeks_a_broker_which_was_stopped_is_no_failure() -> None:
    worker = [LOST.format("19,559"), *RAISED, *REFUSED]
    diagnosis = diagnose_lines({"server": SERVER, "worker": worker})
    assert diagnosis.label == "healthy"
    assert any("stopped on request" in aside for aside in diagnosis.asides)


def test_one_that_lost_its_broker_before_or_fails_of_something_else_is_one() -> None:
    early = [LOST.format("09,559"), *RAISED, *REFUSED]
    assert diagnose_lines({"server": SERVER, "worker": early}).label != "healthy"
    broken = [
        "[2026-11-26 07:48:20,100: ERROR/ForkPoolWorker-1] Task raised unexpected",
        *RAISED[:3],
        "KeyError: 'labels'",
        *REFUSED,
    ]
    assert diagnose_lines({"server": SERVER, "worker": broken}).label == "application-error"


def test_one_that_ends_with_its_exception_failed() -> None:
    worker = [LOST.format("19,559"), *REFUSED, *RAISED]
    assert diagnose_lines({"server": SERVER, "worker": worker}).label != "healthy"


def test_who_was_connected_and_is_refused_later_lost_a_peer_and_met_no_firewall() -> None:
    closed = [*RAISED[:3], "redis.exceptions.ConnectionError: Connection closed by server."]
    assert diagnose_lines({"worker": [*closed, *RAISED]}).label == "peer-died-timeout"
    assert diagnose_lines({"worker": RAISED}).candidates[0].label == "firewall-ports"


def test_a_broker_that_was_reached_later_refutes_what_was_refused_before() -> None:
    reached = "[2026-11-26 07:48:31,100: INFO/MainProcess] Connected to redis://10.0.0.1:6379/0"
    refuted = diagnose_lines({"worker": [*REFUSED, reached]})
    assert refuted.is_open
    assert not any(candidate.evidence for candidate in refuted.candidates)
    standing = diagnose_lines({"worker": [reached, *REFUSED]})
    assert standing.candidates[0].label == "firewall-ports"
    assert standing.candidates[0].evidence
