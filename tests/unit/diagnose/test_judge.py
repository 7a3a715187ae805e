"""Deciding: the first failure leads, survivors do not, and what does not decide stays open."""

from __future__ import annotations

from remedy.diagnose.diagnosis import sure
from remedy.diagnose.judgement.ranking import certainty
from remedy.diagnose.logs import diagnose_lines

WATCHDOG = (
    "[rank0]: 2026-03-01 10:10:00,000 [E ProcessGroupNCCL.cpp:475] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE) ran for 600123 milliseconds before timing out."
)
DISK = "2026-03-01 10:00:00,000 OSError: [Errno 28] No space left on device: '/ckpt/step100.pt'"
RAISED = (
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "ValueError: bad batch",
)


def test_the_first_failure_leads_over_all_ranks() -> None:
    found = diagnose_lines({"rank0.log": [WATCHDOG] * 9, "rank1.log": [DISK]})
    assert found.label == "disk-full"
    assert found.lead is not None
    assert (found.lead.file, found.lead.line, found.lead.rank) == ("rank1.log", 1, 1)
    assert found.consequences[0].file == "rank0.log"
    assert found.candidates[0].evidence[0].details["path"] == "/ckpt/step100.pt"


def test_a_survivors_log_alone_says_that_another_one_failed() -> None:
    assert diagnose_lines({"rank0.log": [WATCHDOG]}).label == "peer-died-timeout"


def test_a_programs_own_exception_is_not_blamed_on_a_host() -> None:
    lines = [*RAISED, "RuntimeError: Connection closed by peer [10.0.0.9]:4123"]
    assert diagnose_lines({"log": lines}).label == "application-error"


def test_a_launchers_exception_is_none() -> None:
    lines = [
        "Traceback (most recent call last):",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ]
    assert diagnose_lines({"log": lines}).label == "unknown"


def test_interleaved_tracebacks_are_told_apart_by_rank() -> None:
    lines = [
        "[rank0]: Traceback (most recent call last):",
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "a.py", line 1, in f',
        '[rank0]:   File "b.py", line 2, in g',
        "[rank1]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.9]:900.",
        "[rank0]: KeyError: 'learning_rate'",
    ]
    found = diagnose_lines({"log": lines})
    assert found.label == "application-error"
    assert found.lead is not None
    assert (found.lead.rank, found.lead.text) == (0, "KeyError: 'learning_rate'")


def test_a_module_that_some_hosts_lack_is_a_matter_of_the_environment() -> None:
    missing = "ModuleNotFoundError: No module named 'job'"
    assert diagnose_lines({"a": ["joined"], "b": [missing]}).label == "env-not-propagated"
    both = [*RAISED[:2], missing]
    assert diagnose_lines({"a": both, "b": both}).label == "application-error"


def test_versions_count_only_where_they_differ() -> None:
    one, other = "NCCL version 2.27.3+cuda12.4", "NCCL version 2.21.5+cuda12.4"
    crash = "ncclSystemError: System call (e.g. socket, malloc) or external library call failed"
    assert diagnose_lines({"a": [one], "b": [other]}).label == "nccl-version-mismatch"
    assert diagnose_lines({"a": [one, crash], "b": [one]}).label != "nccl-version-mismatch"


def test_loopback_and_ports_of_gloo() -> None:
    found = diagnose_lines(
        {
            "log": [
                (
                    "RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:152] timed "
                    "out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:14766"
                )
            ]
        }
    )
    assert found.label == "loopback-hostname"
    assert found.lead is not None
    assert "[127.0.1.1]:14766" in found.lead.text, "as it stands in the log"
    assert found.lead.details["port"] == "44601"


def test_an_ambiguous_text_ranks_candidates_with_reasons() -> None:
    found = diagnose_lines(
        {"log": ["torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"]}
    )
    assert found.label == "unknown"
    assert len(found.candidates) >= 4
    assert all(candidate.reason for candidate in found.candidates)


def test_minus_nine_alone_proves_nothing() -> None:
    found = diagnose_lines(
        {"log": ["failed (exitcode: -9) local_rank: 0 (pid: 55) of binary: python"]}
    )
    assert found.label == "unknown"
    assert "host-oom" in [candidate.label for candidate in found.candidates]


def test_frightening_warnings_of_a_run_that_goes_on() -> None:
    lines = [
        (
            "[W socket.cpp:436] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - "
            "Address family not supported by protocol)."
        ),
        "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.",
        (
            "[W socket.cpp:663] [c10d] The client socket has failed to connect to [a]:29500 (errno: 111 - "
            "Connection refused)."
        ),
        *(f"step {n} loss 0.{n}" for n in range(20)),
    ]
    assert diagnose_lines({"log": lines}).label == "healthy"


def test_nothing_known_is_unknown() -> None:
    for lines in ([], [""], ["Fatal: the flux capacitor failed"]):
        assert diagnose_lines({"log": lines}).label == "unknown"


def test_how_sure_an_answer_is_is_a_number_and_its_word_names_the_range() -> None:
    assert [sure(n)["confidence"] for n in (0.85, 0.849, 0.65, 0.649, 0.01, 0.0)] == [
        *("certain", "likely", "likely", "possible", "possible", "none")
    ]
    found = diagnose_lines({"log": [DISK]})
    assert found.confidence == sure(found.certainty)["confidence"] == "certain"


def test_certainty_grows_with_the_processes_that_show_a_cause() -> None:
    line = "RuntimeError: Gloo connectFullMesh failed with [pair.cc:152] Connect timeout"
    numbers = [
        diagnose_lines({f"rank{rank}.log": [line] for rank in range(count)}).certainty
        for count in (1, 2, 4, 9)
    ]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[1] < numbers[2] == numbers[3]


def test_a_line_that_is_printed_twice_by_one_process_adds_nothing() -> None:
    line = "RuntimeError: Gloo connectFullMesh failed with [pair.cc:152] Connect timeout"
    once, twice = (diagnose_lines({"log": [line] * count}) for count in (1, 2))
    assert once.certainty == twice.certainty


def test_two_causes_that_are_as_likely_are_less_sure() -> None:
    assert certainty(0.9, 0.85) < 0.85 <= certainty(0.9, 0.5)
    assert certainty(0.7, 0.69) < 0.65 <= certainty(0.7, 0.5)
