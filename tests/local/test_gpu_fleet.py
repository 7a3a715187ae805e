"""The whole command over ssh, on machines that share one GPU: red, mended, proved over NCCL, taken back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.local.gpu import Record, kept_of, on_gpu
from tests.local.hosts import NEEDS
from tests.local.rooms import Machines

pytestmark = NEEDS
SETTINGS = """\
verify: {{backend: {backend}, ranks_per_host: 1, deadline: 90, sizes: [8, 1048576, 67108864]}}
"""
REMEDY = [sys.executable, "-m", "remedy"]


@pytest.mark.parametrize(
    ("backend", "count"),
    [
        pytest.param("gloo", 2, marks=pytest.mark.full),
        *(pytest.param("nccl", count, marks=on_gpu) for count in (2, 4)),
    ],
)
def test_a_fleet_behind_closed_firewalls_is_mended_and_proved(
    machines: Callable[..., Machines], backend: str, count: int, record_property: Record
) -> None:
    fleet = machines(count)
    inventory = str(fleet.inventory(SETTINGS.format(backend=backend)))
    fleet.close(22)

    def remedy(*words: str) -> tuple[int, dict[str, Any], str]:
        ended = fleet.at_desk(*REMEDY, *words, "--json", seconds=240)
        report = ended.stdout + ended.stderr
        print(words, report)
        return ended.returncode, json.loads(ended.stdout or "{}"), report

    status, document, report = remedy("verify", inventory)
    assert status == 3, report
    assert not document["verdict"]["passed"]
    status, document, report = remedy("apply", inventory, "--yes")
    assert status == 0, report
    verdict = document["verdict"]
    assert (verdict["backend"], verdict["hosts"], verdict["sum_exact"]) == (backend, count, True)
    kept_of(verdict, record_property)
    status, document, report = remedy("apply", inventory, "--yes")
    assert status == 0, report
    assert not document["plan"]["changes"], report
    status, document, report = remedy("rollback", "latest", inventory, "--yes")
    assert status == 0, report
    status, document, report = remedy("verify", inventory)
    assert status == 3, report
