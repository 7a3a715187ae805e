"""What the probe and the checks say of a GPU that is there, of the driver's libraries, and of who holds it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.local.gpu import Record, on_gpu
from tests.local.hosts import NEEDS
from tests.local.rooms import Machines

pytestmark = [*NEEDS, *on_gpu]
HOLD = """
import torch, time
kept = torch.zeros(2**30, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("held", flush=True)
time.sleep(300)
"""
HELD = 1024  # MiB


@pytest.fixture
def holder() -> Iterator[int]:
    """A process that holds a gibibyte of the GPU."""
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.parametrize("own_pids", [False, True], ids=["of the machine", "of a container"])
def test_who_holds_the_gpu_is_seen(
    machines: Callable[..., Machines], holder: int, own_pids: bool, record_property: Record
) -> None:
    import torch

    fleet = machines(1, own_pids=own_pids)
    inventory = str(fleet.inventory(""))

    def remedy(command: str) -> dict[str, Any]:
        words = [sys.executable, "-m", "remedy", command, inventory, "--json"]
        ended = fleet.at_desk(*words, seconds=120)
        print(command, ended.returncode, ended.stdout, ended.stderr)
        document: dict[str, Any] = json.loads(ended.stdout)
        return document

    gpus = remedy("facts")["hosts"]["gpu01"]["gpus"]
    (device,) = gpus["devices"]
    for name in ("name", "driver", "memory_total", "memory_used", "persistence"):
        record_property(name, device[name])
    assert device["name"] == torch.cuda.get_device_name(0)
    assert device["driver"] == gpus["driver"] != ""
    assert device["memory_used"] >= HELD
    processes = {process["pid"]: process for process in gpus["processes"]}
    findings = [
        finding
        for finding in remedy("check")["hosts"]["gpu01"]["findings"]
        if finding["remedy"] == "gpu_health"
    ]
    record_property("findings", [finding["title"] for finding in findings])
    assert not any("libcuda" in finding["title"] for finding in findings)
    words = json.dumps(findings)
    if own_pids:
        # nvidia-smi knows no number of it in there: nobody else's process is named instead.
        assert str(holder) not in words
        assert "in use" in words
    else:
        assert processes[holder]["memory"] >= HELD
        assert f"pid {holder}: " in words
