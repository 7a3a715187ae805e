"""The system's words, of programs that no entry knows, and what is offered beside an uncertain answer."""

from __future__ import annotations

import pytest

from remedy.diagnose.catalogue import catalogue
from remedy.diagnose.confirm import settled
from remedy.diagnose.diagnosis import (
    CERTAIN,
    LIKELY,
    Confirmation,
    ConfirmationStatus,
    Diagnosis,
    sure,
)
from remedy.diagnose.judgement.alternatives import is_alternative, with_alternatives
from remedy.diagnose.logs import diagnose_sources
from remedy.diagnose.scanner.reader import from_text

FAMILIES = frozenset(entry.family for entry in catalogue())
START = ["trainer 3.1 starts", "reading settings"]


def diagnosed(*lines: str) -> Diagnosis:
    """Diagnose lines without the catalogue: as those of a program that no entry knows."""
    log = from_text("log", "\n".join((*START, *lines)).encode())
    return diagnose_sources([log], without=FAMILIES)


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("mystore: cannot append shard 7: No space left on device", "disk-full"),
        ("ringer: peer table: Name or service not known", "hostname-unresolvable"),
        ("ringer: cannot listen: Address already in use", "master-port-in-use"),
        ("ringer: dial 10.0.0.4:7001: Network is unreachable", "network-unreachable"),
        ("mystore: open shard 9: Too many open files", "nofile-limit"),
        ("mystore: fsync shard 9: Stale file handle", "storage-fault"),
        ("ringer: verbs registration of 4096 bytes: Cannot allocate memory", "memlock-limit"),
        ("RuntimeError: Broken pipe", "peer-died-timeout"),
        ("ringer: dial gpu02: Host is down", "network-unreachable"),
        ("ringer: listen on 10.0.0.4: Cannot assign requested address", "wrong-interface"),
        ("mystore: open card 3: Device or resource busy", "stale-process"),
        ("ringer: the QP to gpu02: Connection timed out", "ib-misconfig"),
        ("ringer: unable to register GPU memory", "memlock-limit"),
        ("ringer: open /dev/infiniband/uverbs0: No such file or directory", "ib-misconfig"),
        ("mystore: lstat /dev/nvidia-uvm: no such file or directory", "container-gpu-runtime"),
        ("Cuda driver error 803 in call at file 'a.h'", "driver-mismatch"),
        ("mystore: shard 3 exceeded its memory limit", "host-oom"),
        ("acme.RingError: binding port 7001 failed", "master-port-in-use"),
        ("ringer: could not find an address for gpu02-ib0", "wrong-interface"),
        ("acme.RingError: ring 3 failed to connect to its peers", "peer-died-timeout"),
        ("acme.RingError: shard 3: Too many open files", "nofile-limit"),
        (
            "RuntimeError: ring 3 has no place: Address already in use (port 7001)",
            "master-port-in-use",
        ),
        ("ringer: dial 10.0.0.4:7001: Operation now in progress", "firewall-ports"),
        # The system's number alone.
        ("[ring] could not bind (error: 98)", "master-port-in-use"),
        ("acme.RingError: [ring] Couldn't bind socket (error: 99 )", "wrong-interface"),
        ("[ring] attempt 4 waits 1000 ms (error: 101 )", "network-unreachable"),
        ("mystore: append failed (errno = 28)", "disk-full"),
        ("ValueError: Can't parse address gpu77:7001", "hostname-unresolvable"),
        ("ringer: failed to look up host gpu77", "hostname-unresolvable"),
        ("acme.RingError: engine 3 died while it ran task 9", "peer-died-timeout"),
        ("ringer: worker gpu02/3 disconnected", "peer-died-timeout"),
        ("launcher: host gpu02 exited with status 127", "env-not-propagated"),
        ("card 3: system not yet initialized", "fabricmanager-not-running"),
        ("card 3: uncorrectable ECC error encountered", "gpu-hardware-xid"),
        ("card 3: invalid device ordinal", "device-visibility"),
        ("card 3: peer mapping resources exhausted", "p2p-acs-iommu"),
    ],
)
def test_words_of_the_system_say_why_an_unknown_program_failed(line: str, label: str) -> None:
    diagnosis = diagnosed(line)
    assert diagnosis.label == label
    assert 0 < diagnosis.certainty < LIKELY
    assert diagnosis.lead is not None
    assert diagnosis.lead.text == line


@pytest.mark.parametrize(
    "line",
    [
        "INFO ringer: dial 10.0.0.4:7001: Connection refused, trying the next",
        "download https://models.example/a.bin: Connection timed out",
        "ringer: all 16 peers met",
        "ringer: Port 7001 is in use, trying another",
    ],
)
def test_what_is_told_or_asked_of_the_web_blames_no_host(line: str) -> None:
    assert diagnosed(line).label in ("unknown", "healthy")


def test_a_process_that_was_ended_says_less_than_what_was_said_before() -> None:
    said = diagnosed("ringer: could not find an address for gpu02-ib0", "ringer (pid 812) Killed")
    assert said.label == "wrong-interface"
    assert diagnosed("ringer (pid 812) Killed").label == "unknown"


def test_words_before_progress_were_survived() -> None:
    steps = (f"step {number} loss 0.{number}" for number in range(1, 9))
    assert (
        diagnosed("ringer: dial 10.0.0.4:7001: Network is unreachable", *steps).label == "healthy"
    )


def test_three_causes_are_offered_where_the_answer_is_not_certain() -> None:
    diagnosis = diagnosed("mystore: open: Too many open files")
    labels = [candidate.label for candidate in diagnosis.candidates]
    assert labels[0] == diagnosis.label
    assert len(set(labels)) == 3
    assert [is_alternative(candidate) for candidate in diagnosis.candidates] == [False, True, True]


@pytest.mark.parametrize(
    ("label", "certainty"),
    [("healthy", 0.6), ("application-error", 0.58), ("firewall-ports", CERTAIN)],
)
def test_nothing_is_offered_beside_what_is_fine_or_certain(label: str, certainty: float) -> None:
    diagnosis = Diagnosis(label=label, **sure(certainty))
    assert with_alternatives(diagnosis) == diagnosis


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("ValueError: cannot import name 'fast_sum' of its module", "multi-python"),
        ("ValueError: the archive of the checkpoint is broken", "storage-fault"),
    ],
)
def test_an_error_of_the_program_says_what_else_it_can_be(line: str, other: str) -> None:
    diagnosis = diagnosed(
        "Traceback (most recent call last):", '  File "train.py", line 3, in <module>', line
    )
    assert diagnosis.label == "application-error"
    assert other in [candidate.label for candidate in diagnosis.candidates]


def test_what_no_line_speaks_for_stays_behind_what_one_does_whatever_hosts_show() -> None:
    diagnosis = diagnosed("mystore: open: Too many open files")
    statuses = (ConfirmationStatus.OPEN, ConfirmationStatus.CONFIRMED, ConfirmationStatus.OPEN)
    confirmations = [
        Confirmation(label=candidate.label, status=status, hosts=("gpu01",), evidence=("x",))
        for candidate, status in zip(diagnosis.candidates, statuses, strict=True)
    ]
    decided, confirmed = settled(diagnosis, confirmations)
    assert decided.label == "nofile-limit"
    assert confirmed is None


@pytest.mark.parametrize(
    "line",
    ["ringer: step failed (error: 1)", "ringer: cuda call failed (error: 2)", "loss (error: 98.5)"],
)
def test_a_small_number_is_seldom_the_systems(line: str) -> None:
    assert diagnosed(line).label == "unknown"


@pytest.mark.parametrize(
    ("inner", "label"),
    [
        ("[0:apply]FileNotFoundError: [Errno 28] No space left on device", "disk-full"),
        ("[Engine Exception]EngineError: Engine 0 died while it ran a task", "peer-died-timeout"),
        ("[0:apply]ZeroDivisionError: no samples in this shard", "application-error"),
    ],
)
def test_an_exception_that_gathers_others_speaks_for_what_they_do(inner: str, label: str) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        "    view.apply(work)",
        "acme.CompositeError: one or more exceptions raised in: work",
        inner,
    ]
    assert diagnosed(*raised).label == label


CHAIN = [
    "Traceback (most recent call last):",
    '  File "serve.py", line 9, in listen',
    "    bind()",
    "OSError: [Errno 98] Address already in use",
    "",
    "{0}",
    "",
    "Traceback (most recent call last):",
    '  File "serve.py", line 19, in main',
    "    listen()",
    "acme.RingError: the ring is no ring",
]


@pytest.mark.parametrize(
    ("mark", "label"),
    [
        (
            "The above exception was the direct cause of the following exception:",
            "master-port-in-use",
        ),
        (
            "During handling of the above exception, another exception occurred:",
            "master-port-in-use",
        ),
        ("the ring goes on", "application-error"),
    ],
)
def test_an_exception_that_names_nothing_leaves_it_to_the_one_it_was_raised_from(
    mark: str, label: str
) -> None:
    assert diagnosed(*(line.format(mark) for line in CHAIN)).label == label


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("ZeroDivisionError: no samples in this shard", "likely"),
        ("AssertionError", "possible"),
        ("acme.RingError: the scheduler did not come up", "possible"),
    ],
)
def test_an_exception_about_what_a_program_runs_with_is_its_own_fault_at_most_possibly(
    text: str, confidence: str
) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        "    x()",
        text,
    ]
    found = diagnosed(*raised)
    assert (found.label, found.confidence) == ("application-error", confidence)


def test_a_worker_of_a_loader_passes_on_what_it_raised() -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        "    for batch in loader:",
        "RuntimeError: Caught OSError in DataLoader worker process 0.",
        "Original Traceback (most recent call last):",
        '  File "data.py", line 3, in fetch',
        "    read()",
        "OSError: [Errno 116] Stale file handle",
    ]
    assert diagnosed(*raised).label == "storage-fault"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("acme.comm.StreamClosedError: Stream is closed", "peer-died-timeout"),
        (
            "concurrent.futures.process.BrokenProcessPool: A process in the pool was ended",
            "peer-died-timeout",
        ),
        ("RuntimeError: write(): fd 29 failed with Input/output error", "storage-fault"),
        ("acme.StartError: could not start the gRPC server", "master-port-in-use"),
        ("acme.LoadError: cannot load the MPI library", "missing-library"),
        ("acme.LaunchError: gpu02 was not reachable via ssh", "ssh-launch-failure"),
    ],
)
def test_an_exception_is_read_by_its_kind_and_its_words(text: str, label: str) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        "    x()",
        text,
    ]
    assert diagnosed(*raised).label == label
