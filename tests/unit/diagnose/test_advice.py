"""Answers that lead on: what the lines name stands in the advice, and several logs give a timeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.cli.main import main
from remedy.diagnose.advice import fix, look, named, where_to_look
from remedy.diagnose.logs import diagnose_lines

REFUSED = (
    "[rank3]: NCCL WARN socketStartConnect: Connect to 10.0.0.9<41235> failed : No route to host"
)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (REFUSED, "nc -zv 10.0.0.9 41235"),
        ("RuntimeError: Unable to find address for: eno7", "ip -br address show eno7"),
        ("OSError: [Errno 28] No space left on device: '/ckpt/a'", "df -h /ckpt/a; df -i /ckpt/a"),
        (
            "ssh: connect to host gpu02 port 22: Connection refused",
            "ssh -o BatchMode=yes gpu02 true",
        ),
        (
            "OSError: libcudart.so.12: cannot open shared object file: No such file or directory",
            "ldconfig -p | grep -F libcudart.so.12",
        ),
    ],
)
def test_what_a_line_names_stands_in_the_command(line: str, command: str | None) -> None:
    assert look(diagnose_lines({"log": [line]})) == command


def test_what_a_line_names_is_said() -> None:
    found = diagnose_lines({"log": [REFUSED]})
    assert named(found) == "rank 3, address 10.0.0.9, port 41235"


def test_a_port_whose_bytes_gloo_swaps_is_named_as_it_is_and_as_it_stands_there() -> None:
    line = (
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:20410"
    )
    assert "port 47695 (gloo prints 20410)" in named(diagnose_lines({"log": [line]}))


def test_the_host_of_a_line_is_where_to_look() -> None:
    line = "gpu02 kernel: NVRM: Xid (PCI:0000:18:00): 79, pid=4411, GPU has fallen off the bus."
    found = diagnose_lines({"log": [line]})
    assert named(found) == "on gpu02, bus 0000:18:00"
    assert where_to_look(found) == "on gpu02"


def test_what_another_host_names_is_not_named_beside_the_first() -> None:
    completion = (
        "NCCL WARN NET/IB : Got completion from peer {peer}<44124> with status=12 opcode=0 len=0"
    )
    logs = {
        "gpu02.log": [
            "2026-11-27 22:04:03 gpu02 kernel: mlx5_core 0000:9a:00.0: Port module event: Cable unplugged",
            f"2026-11-27 22:04:14 gpu02:334:444 [0] {completion.format(peer='10.9.0.3')} (Send)",
        ],
        "gpu03.log": [
            f"2026-11-27 22:04:12 gpu03:338:448 [0] {completion.format(peer='10.9.0.2')} (Recv)"
        ],
    }
    found = diagnose_lines(logs)
    assert named(found).startswith("on gpu02, address 10.9.0.3")
    assert where_to_look(found) == "on gpu02"


def test_the_code_that_wrote_is_not_on_the_disk_that_is_full() -> None:
    head = [
        "Traceback (most recent call last):",
        '  File "/opt/venv/torch/save.py", line 9, in save',
    ]
    where = "OSError: [Errno 28] No space left on device"
    assert look(diagnose_lines({"log": [*head, where]})) is None
    found = look(diagnose_lines({"log": [*head, f"{where}: '/data/out/step-800'"]}))
    assert found is not None
    assert "/data/out/step-800" in found


def test_text_that_a_shell_would_read_is_not_in_a_command() -> None:
    line = "ssh: connect to host gpu02;reboot port 22: Connection refused"
    assert look(diagnose_lines({"log": [line]})) is None


def test_what_is_not_certain_asks_the_hosts(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(REFUSED, encoding="utf-8")
    shown = CliRunner().invoke(main, ["diagnose", str(log)]).stdout
    assert f"Run: remedy diagnose {log} --inventory INVENTORY" in shown
    assert "remedy apply" not in shown
    assert "Look where rank 3 runs: nc -zv 10.0.0.9 41235" in shown


def test_the_last_exception_is_shown_where_the_cause_is_unknown() -> None:
    lines = ["start", "[rank0]: NcclTimeoutError: socket 4 is gone", "bye"]
    found = diagnose_lines({"log": lines})
    assert found.label == "unknown"
    assert found.lead is not None
    assert (found.lead.line, found.lead.text) == (2, "NcclTimeoutError: socket 4 is gone")


def test_a_programs_exception_without_a_traceback_is_possibly_the_programs() -> None:
    found = diagnose_lines(
        {"log": ["(Worker pid=8) ERROR 05-14 01:20:54 [a.py:9] KeyError: 'ids'"]}
    )
    assert (found.label, found.confidence) == ("application-error", "possible")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("OSError: [Errno 28] nothing was written", "disk-full"),
        ("OSError: [Errno 116] x", "storage-fault"),
        ("socket.gaierror: [Errno -5] x", "hostname-unresolvable"),
        ("ValueError: batch of 7", "application-error"),
    ],
)
def test_the_kind_of_an_exception_speaks_where_no_entry_does(text: str, label: str) -> None:
    trace = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', text]
    assert diagnose_lines({"log": trace}).label == label


def test_logs_of_a_job_give_a_timeline(tmp_path: Path) -> None:
    lost = "2026-03-01 10:10:0{},000 RuntimeError: Connection closed by peer [10.0.0.9]:4123"
    for rank in range(8):
        (tmp_path / f"rank{rank}.log").write_text(lost.format(rank), encoding="utf-8")
    (tmp_path / "rank9.log").write_text(
        "2026-03-01 10:00:00,000 OSError: [Errno 28] No space left on device: '/ckpt/a'",
        encoding="utf-8",
    )
    shown = CliRunner().invoke(main, ["diagnose", str(tmp_path)]).stdout.splitlines()
    start = shown.index("In the order of time")
    assert "10:00:00" in shown[start + 1]
    assert "rank9.log:1" in shown[start + 1]
    assert "10:10:00" in shown[start + 2]
    assert "(and 7 other logs)" in shown[start + 2]
    assert len(shown) <= 40


def test_a_line_without_a_time_stands_by_the_nearer_line_that_has_one(tmp_path: Path) -> None:
    start = "W0301 10:00:00.000000 12 torch/distributed/run.py:792] Setting OMP_NUM_THREADS"
    ended = "E0301 10:31:0{}.000000 12 torch/x/api.py:1002] failed (exitcode: {}) local_rank: 0 (pid: 15)"
    steps = [f"[rank 0] step {n} loss 6.9" for n in range(30)]
    victim = "RuntimeError: Connection closed by peer [10.0.0.9]:4123"
    raised = ["Traceback (most recent call last):", '  File "/app/train.py", line 3, in f', victim]
    (tmp_path / "a.log").write_text("\n".join([start, *steps, *raised, ended.format(5, 1)]))
    (tmp_path / "b.log").write_text("\n".join([start, *steps, ended.format(1, -9)]))
    (tmp_path / "c.log").write_text(
        "\n".join([start, *steps, "OSError: [Errno 28] No space left on device"])
    )
    shown = CliRunner().invoke(main, ["diagnose", str(tmp_path)]).stdout.splitlines()
    first = shown.index("In the order of time") + 1
    assert [line.split(".log:")[0] for line in shown[first : first + 3]] == [
        "  after 10:00:00 " + tmp_path.name + "/c",
        "  10:31:01 " + tmp_path.name + "/b",
        "  10:00:00-10:31:05 " + tmp_path.name + "/a",
    ]


def test_a_traceback_right_below_a_line_with_a_time_stands_there(tmp_path: Path) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "/a/t.py", line 3, in f',
        "ValueError: bad batch",
    ]
    stop = "2026-03-01 10:30:12,000 WARNING agent: stopping workers"
    lost = "2026-03-01 10:00:14,000 ERROR RuntimeError: Connection closed by peer [10.0.0.9]:4123"
    (tmp_path / "a.log").write_text(
        "\n".join(["2026-03-01 10:00:10,000 INFO step 11", *raised, stop])
    )
    (tmp_path / "b.log").write_text(lost)
    shown = CliRunner().invoke(main, ["diagnose", str(tmp_path)]).stdout.splitlines()
    first = shown.index("In the order of time") + 1
    assert shown[first].startswith(f"  10:00:10-10:30:12 {tmp_path.name}/a.log")
    assert shown[first + 1].startswith(f"  10:00:14 {tmp_path.name}/b.log")


def test_a_timeline_says_how_much_it_leaves_out() -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 3, in main',
        "    f(1)",
    ]
    logs = {f"rank{rank}.log": [*raised, f"ValueError: batch of {rank}"] for rank in range(14)}
    diagnosis = diagnose_lines(logs)
    assert len(diagnosis.timeline) == 10
    assert "not in the order of time: 4 more kinds of failure, first in 4 logs" in diagnosis.notes
    few = diagnose_lines({name: logs[name] for name in list(logs)[:9]})
    assert not [note for note in few.notes if "order of time" in note]


def test_no_line_is_shown_twice(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2026-03-01 10:00:00,000 " + REFUSED, encoding="utf-8")
    shown = CliRunner().invoke(main, ["diagnose", str(tmp_path / "a.log")]).stdout
    assert shown.count("Connect to 10.0.0.9<41235>") == 1


def test_what_to_do_is_that_of_the_first_failure_where_its_cause_says_something_else() -> None:
    lost = diagnose_lines({"log": ["srun: error: Node failure on gpu03"]})
    assert lost.label == "peer-died-timeout"
    assert "without that host" in fix(lost)
    assert fix(diagnose_lines({"log": [REFUSED]})) == ""
    assert fix(diagnose_lines({"log": ["nothing"]})) == ""


def test_what_an_entry_says_to_do_is_shown_in_the_place_of_what_the_cause_says(
    tmp_path: Path,
) -> None:
    log = tmp_path / "job.log"
    log.write_text("srun: error: Node failure on gpu03\n", encoding="utf-8")
    shown = CliRunner().invoke(main, ["diagnose", str(log)]).output
    assert "without that host" in " ".join(shown.split())
    assert shown.count("Fix: ") == 1


def test_an_address_that_c10d_made_up_is_not_advised() -> None:
    """As torch 2.13 printed it of a host whose hosts file had an old address of gpu01."""
    before = "[W1129 07:15:41.80 socket.cpp:764] [c10d] The client socket has failed to connect to"
    whole = "[E1129 07:15:41.81 socket.cpp:818] [c10d] The client socket has failed to connect to any network"
    log = [
        f"{before} [e7c4:0:da5:0:5598::]:3493 (errno: 113 - No route to host).",
        f"{before} 152.85.0.0:3491 (errno: 113 - No route to host).",
        f"{whole} address of (gpu01, 29500).",
    ]
    read = diagnose_lines({"gpu03.log": log})
    assert named(read) == "address gpu01, port 29500"
    assert "hostname-unresolvable" in {candidate.label for candidate in read.candidates}
    right = [log[0].replace("[e7c4:0:da5:0:5598::]:3493", "10.0.0.9:29500"), log[2]]
    assert "address 10.0.0.9, port 29500" in named(diagnose_lines({"gpu03.log": right}))
