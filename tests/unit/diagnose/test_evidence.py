"""What tools say when they are asked: recognised by what it holds, and read as what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remedy.diagnose.lines import clean, time_of
from remedy.diagnose.logs import diagnose_lines, diagnose_paths

TOOLS = Path(__file__).parents[2] / "diagnose" / "tools"
TOPIC = 0.2  # what a text is merely about
SMI_OF_H200 = TOOLS / "nvidia-smi-h200.txt"
SMI = """==============NVSMI LOG==============

Driver Version                            : 535.104.05
Attached GPUs                             : 2
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Fabric
        State                             : {fabric}
        Status                            : {status}
    ECC Errors
        Volatile
            SRAM Correctable              : 12
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : {dram}
        Aggregate
            DRAM Uncorrectable            : 3
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : {pending}
        Remapping Failure Occurred        : No
    Processes                             : None
"""
WELL = {"fabric": "Completed", "status": "Success", "dram": "0", "pending": "No"}


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ({}, "unknown"),
        ({"dram": "2"}, "gpu-hardware-xid"),
        ({"pending": "Yes"}, "gpu-hardware-xid"),
        ({"fabric": "In Progress", "status": "N/A"}, "fabricmanager-not-running"),
        ({"dram": "N/A"}, "unknown"),
    ],
)
def test_cards_of_nvidia_smi(values: dict[str, str], label: str) -> None:
    found = diagnose_lines({"smi": SMI.format(**{**WELL, **values}).splitlines()})
    assert found.label == label
    if label != "unknown":
        assert found.lead is not None
        assert found.lead.text.startswith("GPU 00000000:3B:00.0: ")
        assert found.lead.details["device"] == "00000000:3B:00.0"


PORT = """CA '{name}'
\tCA type: MT4129
\tNumber of ports: 1
\tPort 1:
\t\tState: {state}
\t\tPhysical state: {physical}
\t\tRate: 400
\t\tLink layer: {layer}
"""


def _ports(*ports: tuple[str, str, str]) -> list[str]:
    names = (f"mlx5_{number}" for number in range(len(ports)))
    texts = (
        PORT.format(name=name, state=state, physical=physical, layer=layer)
        for name, (state, physical, layer) in zip(names, ports, strict=True)
    )
    return "".join(texts).splitlines()


UP = ("Active", "LinkUp", "InfiniBand")


@pytest.mark.parametrize("output", sorted(TOOLS.glob("*.txt")), ids=lambda output: output.stem)
def test_a_healthy_host_is_not_called_faulty(output: Path) -> None:
    """What tools print of hosts that work: an H200 and what runs beside it, its numbers taken out.

    Adapters, switches, schedulers and other cards are in the tools' form, written down by hand.
    """
    found = diagnose_paths([output])
    # No line of it reports a failure, and it is no log of a run: what it shows proves nothing.
    assert found.label in ("unknown", "healthy")
    assert found.confidence in ("none", "possible")
    assert not found.lead
    assert all(candidate.score <= TOPIC for candidate in found.candidates)


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("TPC Repair Pending                             : No", "Yes"),
        ("Unrepairable Memory                            : No", "Yes"),
        ("Remapping Failure Occurred                     : No", "Yes"),
        ("GPU Recovery Action                                : None", "Reset"),
    ],
)
def test_one_value_makes_it_faulty(line: str, broken: str) -> None:
    text = SMI_OF_H200.read_text()
    assert text.count(line) == 1
    name = line.split(":")[0]
    found = diagnose_lines({"smi": text.replace(line, f"{name}: {broken}").splitlines()})
    assert found.label == "gpu-hardware-xid"
    assert found.lead is not None
    assert name.strip() in found.lead.text


@pytest.mark.parametrize(
    ("ports", "label"),
    [
        ([UP, UP], "unknown"),
        ([("Down", "Polling", "InfiniBand")], "ib-link-fault"),
        ([UP, ("Down", "Disabled", "Ethernet")], "unknown"),
        ([("Initializing", "LinkUp", "InfiniBand")], "ib-misconfig"),
        ([UP, ("Active", "LinkUp", "Ethernet")], "ib-roce-mixed"),
    ],
)
def test_ports_of_ibstat(ports: list[tuple[str, str, str]], label: str) -> None:
    assert diagnose_lines({"ibstat": _ports(*ports)}).label == label


def test_a_port_without_a_cable_at_boot_is_a_hint_alone() -> None:
    diagnosis = diagnose_lines({"dmesg": ["mlx5_core 0000:a1:00.0 eth3: Link down"]})
    assert diagnosis.label == "unknown"
    assert diagnosis.candidates[0].label == "ib-link-fault"


def test_a_record_of_the_journal_is_a_line() -> None:
    record = {
        "__REALTIME_TIMESTAMP": "1772600770123456",
        "_HOSTNAME": "gpu01",
        "SYSLOG_IDENTIFIER": "kernel",
        "MESSAGE": "NVRM: Xid (PCI:0000:3b:00): 79, pid=812, GPU has fallen off the bus.",
    }
    line = clean(json.dumps(record).encode())
    assert line.endswith(f"gpu01 kernel: {record['MESSAGE']}")
    assert time_of(line) is not None
    found = diagnose_lines({"journal": [json.dumps(record)]})
    assert found.label == "gpu-hardware-xid"
    as_bytes = {**record, "MESSAGE": list(record["MESSAGE"].encode())}
    assert clean(json.dumps(as_bytes).encode()) == line


@pytest.mark.parametrize("text", ['{"__REALTIME_TIMESTAMP": ', '{"__REALTIME_TIMESTAMP": "x"}'])
def test_what_is_no_record_of_the_journal_stays_as_it_is(text: str) -> None:
    assert clean(text.encode()) == text.rstrip()


def test_an_answer_of_ras_names_the_process_and_is_no_proof_of_health() -> None:
    well = ["Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors"]
    well.append("    0         8         4         1         4        32   RUNNING      OK")
    assert diagnose_lines({"ras": well}).label == "unknown"
    lost = ["INCOMPLETE", "  Missing communicator data from 1 job process"]
    lost.append("  Process 3487984 on node 172.16.64.213 managing GPU 5")
    found = diagnose_lines({"ras": [*well, *lost]})
    assert found.label == "peer-died-timeout"
    assert any(quote.details.get("pid") == "3487984" for quote in found.consequences)


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("   JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null)", "host-oom"),
        ("   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)", "peer-died-timeout"),
        # Possibly: the exit code is that of the last command of a script.
        ("   JobState=COMPLETED Reason=None Dependency=(null)", "healthy"),
        ("12345.0        train OUT_OF_ME+      0:125", "host-oom"),
        ("# Out of bounds values : 12 FAILED", "unknown"),
    ],
)
def test_words_of_slurm_and_nccl_tests(line: str, label: str) -> None:
    assert diagnose_lines({"answer": [line]}).label == label


def test_wrong_sums_can_be_of_a_gpu_of_an_iommu_or_of_nccl() -> None:
    diagnosis = diagnose_lines({"log": ["# Out of bounds values : 12 FAILED"]})
    labels = [candidate.label for candidate in diagnosis.candidates]
    assert labels == ["gpu-hardware-xid", "p2p-acs-iommu", "application-error"]


def test_a_traceback_in_records_of_the_journal_is_read() -> None:
    messages = [
        "step 1 loss 3.0",
        "Traceback (most recent call last):",
        '  File "/root/train.py", line 80, in main',
        "    raise RuntimeError(x)",
        "RuntimeError: loss is NaN at step 10, stopping",
    ]
    rows = [
        json.dumps(
            {
                # Fields come in any order, and a record is longer than what patterns see of a line.
                "_CMDLINE": "python train.py " + "x" * 2_000,
                "__REALTIME_TIMESTAMP": str(1_767_261_600_000_000 + number),
                "_HOSTNAME": "gpu01",
                "SYSLOG_IDENTIFIER": "torchrun",
                "MESSAGE": message,
                "_SYSTEMD_UNIT": "job.service",
            }
        )
        for number, message in enumerate(messages)
    ]
    diagnosis = diagnose_lines({"journal": rows})
    assert diagnosis.label == "application-error"
    assert diagnosis.lead is not None
    assert (diagnosis.lead.line, diagnosis.lead.text) == (5, messages[-1])
    # In any other log a record is an ordinary line.
    mixed = diagnose_lines({"log": ["begin", *rows]})
    assert mixed.label != "healthy"


def test_a_message_that_goes_on_below_its_first_line_is_read() -> None:
    head = [
        "Traceback (most recent call last):",
        '  File "/root/train.py", line 12, in <module>',
        "    main()",
        "lib.core.LibError: [19:36:55] /src/collective/result.cc:83: [comm.cc:220|19:36:55]:",
        "",
    ]
    reason = "-- [comm.cc:41|19:36:55]: Failed to connect to the tracker."
    diagnosis = diagnose_lines({"log": [*head, reason]})
    assert diagnosis.label == "peer-died-timeout"
    # What stands below a stack of C++ is no message.
    other = diagnose_lines({"log": [*head, "Stack trace:", reason, "[bt] (0)"]})
    assert other.label != "application-error"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("lib.errors.UnavailableError: Graph execution error:", "peer-died-timeout"),
        ("RuntimeError: basic_ios::clear: iostream error", "disk-full"),
    ],
)
def test_kinds_of_exceptions_that_no_entry_knows(text: str, label: str) -> None:
    head = ["Traceback (most recent call last):", '  File "/root/train.py", line 3, in main']
    assert diagnose_lines({"log": [*head, text]}).label == label


def test_a_program_that_cannot_be_started_is_not_on_the_path() -> None:
    text = "0: stepd-gpu01: error: execve(): trainer: No such file or directory"
    assert diagnose_lines({"log": [text]}).label == "env-not-propagated"


def test_ranks_that_made_steps_had_met_whatever_words_come_later() -> None:
    steps = [f"step {n} loss {3 - n}" for n in range(3)]
    failure = "tracker: fatal: poll: Connection timed out"
    assert diagnose_lines({"log": ["begin", failure]}).label == "firewall-ports"
    later = diagnose_lines({"log": [*steps, failure]})
    assert later.candidates[0].label == "peer-died-timeout"


SEEN = Path(__file__).parents[1] / "verify" / "onhost" / "ras"


@pytest.mark.parametrize(
    ("answer", "confidence", "details"),
    [
        ("stopped.json", "likely", {"rank": "1", "pid": "30", "host": "10.77.0.2"}),
        ("asleep.json", "possible", {"rank": "0", "pid": "20", "host": "10.77.0.1"}),
    ],
)
def test_answers_of_ncclras_as_json_name_the_rank(
    answer: str, confidence: str, details: dict[str, str]
) -> None:
    diagnosis = diagnose_paths([SEEN / answer])
    assert (diagnosis.label, diagnosis.confidence) == ("peer-died-timeout", confidence)
    assert diagnosis.lead is not None
    assert diagnosis.lead.details == details


@pytest.mark.parametrize("answer", ["even.json", "asleep.txt"])
def test_an_answer_of_ncclras_is_no_proof_of_health(answer: str) -> None:
    assert not diagnose_paths([SEEN / answer]).is_fine
    assert diagnose_paths([SEEN / answer]).label != "healthy"


def test_a_job_that_prints_the_state_of_its_cards_first_is_a_run() -> None:
    cards = [
        "==============NVSMI LOG==============",
        "GPU 00000000:00:06.0",
        "    Product Name : NVIDIA H200",
    ]
    steps = [f"step {step}/20 loss 0.{step}" for step in range(1, 21)]
    assert diagnose_lines({"log": cards}).label == "unknown"
    assert diagnose_lines({"log": [*cards, *steps, "Training finished"]}).label == "healthy"


CARD = """==============NVSMI LOG==============

GPU 00000000:18:00.0
    GPU Link Info
        Link Width
            Max                           : 16x
            Current                       : {width}
    Clocks Event Reasons
        HW Slowdown                       : {slow}
            HW Thermal Slowdown           : {slow}
"""


@pytest.mark.parametrize(
    ("width", "slow", "label"),
    [
        ("16x", "Not Active", "unknown"),
        ("N/A", "Not Active", "unknown"),
        ("4x", "Not Active", "gpu-hardware-xid"),
        ("16x", "Active", "gpu-hardware-xid"),
    ],
)
def test_a_card_that_is_slow_is_possibly_faulty(width: str, slow: str, label: str) -> None:
    found = diagnose_lines({"smi": CARD.format(width=width, slow=slow).splitlines()})
    assert found.label == label
    assert found.confidence in ("none", "possible")


ADAPTER = """CA '{name}'
\tCA type: {kind}
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: {rate}
\t\tLink layer: InfiniBand
"""


@pytest.mark.parametrize(
    ("kind", "rate", "is_named"),
    [("MT4129", 100, True), ("MT4129", 400, False), ("MT4119", 100, False)],
    ids=["a part of its rate", "its rate", "another kind of adapter"],
)
def test_a_port_that_is_slower_than_its_like_is_named(kind: str, rate: int, is_named: bool) -> None:
    text = ADAPTER.format(name="mlx5_0", kind=kind, rate=rate)
    text += ADAPTER.format(name="mlx5_1", kind="MT4129", rate=400)
    found = diagnose_lines({"ibstat": text.splitlines()})
    assert found.label == "unknown"
    assert (found.lead is not None and "mlx5_0 port 1: Rate: 100" in found.lead.text) == is_named


def test_slow_large_messages_are_said_beside_a_run_that_ended_well() -> None:
    row = (
        "  1073741824     268435456     float     sum      -1  {time:>7}  {bus:>6}  {bus:>6}      0"
    )
    end = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : {bus}"]
    slow = diagnose_lines({"log": [row.format(time=9123456, bus="0.12"), *end]})
    assert (slow.label, slow.is_open) == ("healthy", False)
    assert "ib-misconfig" in [candidate.label for candidate in slow.candidates]
    fast = diagnose_lines({"log": [row.format(time=5873, bus="342.79"), *end]})
    assert "ib-misconfig" not in [candidate.label for candidate in fast.candidates]


def test_a_job_that_waits_for_its_hosts_has_not_failed() -> None:
    queue = "    4411     train llm-pret    alice PD       0:00      8 (ReqNodeNotAvail, gpu07)"
    for line in ("   JobState=PENDING Reason=Resources Dependency=(null)", queue):
        found = diagnose_lines({"log": [line]})
        assert found.label == "unknown"
        assert found.lead is not None
        assert "has not started the job" in found.lead.meaning
