"""Collectors put words of their own around what was printed: what a log says does not depend on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from remedy.diagnose.logs import diagnose_paths, diagnose_sources
from remedy.diagnose.scanner.reader import from_text

CONNECT = (
    "gpu01:411:482 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.30.0.8<48213> failed : "
    "No route to host"
)
PRINTED = {
    "an exception": (
        [
            "rank 3 of 8 starts",
            "Traceback (most recent call last):",
            '  File "train.py", line 41, in main',
            '    hidden = cfg["hidden"]',
            "KeyError: 'hidden'",
        ],
        "application-error",
    ),
    "a warning of NCCL": (
        [
            "gpu01:411:482 [0] NCCL INFO Using network Socket",
            CONNECT,
            "gpu01:411:482 [0] NCCL INFO misc/socket.cc:561 -> 2",
        ],
        "firewall-ports",
    ),
    "steps": (
        ["step 10 loss 2.1", "step 20 loss 2.0", "step 30 loss 1.9", "training finished"],
        "healthy",
    ),
    "a count of nothing": (
        [
            "[preflight] oom_kill events since boot: 0",
            "step 10 loss 2.1",
            "step 20 loss 2.0",
            "training finished",
        ],
        "healthy",
    ),
}


def _stamp(number: int) -> str:
    return f"2025-03-04T11:00:{number:02d}"


def _record(**fields: object) -> str:
    return json.dumps(fields)


FORMS: dict[str, Callable[[int, str], str]] = {
    "plain": lambda _, text: text,
    "Google's, a text": lambda n, text: _record(
        textPayload=text, timestamp=f"{_stamp(n)}.1Z", severity="ERROR"
    ),
    "Google's, a message": lambda n, text: _record(
        insertId=f"a{n}",
        jsonPayload={"message": text},
        severity="ERROR",
        timestamp=f"{_stamp(n)}.1Z",
    ),
    "fluentd": lambda n, text: (
        f"{_stamp(n)}+00:00\tkube.var.log.w-0.log\t"
        + _record(stream="stdout", log=text, kubernetes={"pod_name": "w-0"})
    ),
    "Loki": lambda n, text: _record(labels={"pod": "w-0"}, line=text, timestamp=f"{_stamp(n)}.1Z"),
    "logfmt": lambda n, text: f'time="{_stamp(n)}Z" level=error msg={json.dumps(text)} rank=3',
    "Airflow": lambda n, text: (
        f"[2025-03-04, 11:00:{n:02d} UTC] {{subprocess.py:93}} INFO - {text}"
    ),
    "glog": lambda n, text: f"I0304 11:00:{n:02d}.000000 140 launch.py:88] {text}",
    "Python's logging": lambda n, text: f"2025-03-04 11:00:{n:02d},123 - trainer - ERROR - {text}",
    "loguru": lambda n, text: f"2025-03-04 11:00:{n:02d}.123 | ERROR    | trainer:run:88 - {text}",
    "structlog": lambda n, text: f"{_stamp(n)}Z [error    ] {text} [trainer] rank=3",
    "Determined": lambda n, text: f"[{_stamp(n)}.123Z] 8a1b2c3d [rank=3] || ERROR: {text}",
    "GitHub's runners": lambda n, text: f"{_stamp(n)}.1234567Z {text}",
    "GitLab's": lambda n, text: f"{_stamp(n)}.123456Z 01O {text}",
    "Ray": lambda _, text: f"(TrainWorker pid=411, ip=10.0.0.3) {text}",
    "SkyPilot": lambda _, text: f"(worker1, rank=1, pid=411, ip=10.0.0.3) {text}",
    "grep -n": lambda n, text: f"logs/rank3.err:{n + 1}:{text}",
    "nl": lambda n, text: f"{n + 1:6d}\t{text}",
    "a quotation": lambda _, text: f"> {text}",
    "a block of text": lambda _, text: f"    {text}",
}


@pytest.mark.parametrize("kind", PRINTED)
@pytest.mark.parametrize("form", FORMS)
def test_what_a_log_says_does_not_depend_on_its_collector(form: str, kind: str) -> None:
    printed, label = PRINTED[kind]
    text = "\n".join(FORMS[form](number, line) for number, line in enumerate(printed)) + "\n"
    assert diagnose_sources([from_text("log", text.encode())]).label == label


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_what_a_log_says_does_not_depend_on_its_encoding(encoding: str, tmp_path: Path) -> None:
    printed, label = PRINTED["an exception"]
    log = tmp_path / "log"
    log.write_bytes("\r\n".join(printed).encode(encoding))
    assert diagnose_paths([log]).label == label


def test_lines_keep_their_numbers() -> None:
    printed, _ = PRINTED["a warning of NCCL"]
    text = "\n".join(FORMS["Loki"](number, line) for number, line in enumerate(printed))
    lead = diagnose_sources([from_text("log", text.encode())]).lead
    assert lead is not None
    assert lead.line == 2
    assert lead.text.startswith("gpu01:411:482 [0] misc/socket.cc:484 NCCL WARN")
    assert lead.time is not None


def test_a_loggers_own_lines_are_no_collectors() -> None:
    """They come from many places, and their levels say something."""
    rows = [
        f"2025-03-04 11:00:0{n},123 - module{n} - INFO - step {n} loss {3 - n}" for n in range(3)
    ]
    found = diagnose_sources([from_text("log", "\n".join(rows).encode())])
    assert found.lead is None
    nccl = ["gpu02:21:21 [0] NCCL INFO cudaDriverVersion 13000"] * 4
    warned = "gpu02:21:22 [0] bootstrap.cc:71 NCCL WARN Bootstrap : no socket interface found"
    (lead,) = (diagnose_sources([from_text("log", "\n".join([*nccl, warned]).encode())]).lead,)
    assert lead is not None
    assert lead.host == "gpu02"


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("orted: Kommando nicht gefunden.", "env-not-propagated"),
        ("orted\N{FULLWIDTH COLON}未找到命令", "env-not-propagated"),
        ("cp: 写入 '/data/x' 出错: 设备上没有空间", "disk-full"),
        (
            "OSError: [Errno 28] Auf dem Gerät ist kein Speicherplatz mehr verfügbar: '/ckpt/a'",
            "disk-full",
        ),
        ("ssh: connect to host gpu02 port 22: Connexion refusée", "ssh-launch-failure"),
        ("ping: gpu77: 未知的名称或服务", "hostname-unresolvable"),
    ],
)
def test_what_the_system_says_in_another_language(line: str, label: str) -> None:
    found = diagnose_sources([from_text("log", line.encode())])
    assert found.label == label
    assert found.lead is not None
    assert found.lead.line == 1
