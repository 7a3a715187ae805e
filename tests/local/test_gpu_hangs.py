"""NCCL itself says which rank does not come: its RAS service is asked on each host while the others wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.corpus import one_gpu_hangs
from remedy.diagnose.logs import diagnose_paths
from remedy.verify.onhost.ras_answer import ranks_of
from tests.local.gpu import on_gpu
from tests.local.hosts import NEEDS

pytestmark = [*NEEDS, *on_gpu]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hangs of four hosts: rank 0 stopped in one, and asleep in the other."""
    folder = tmp_path_factory.mktemp("hangs")
    one_gpu_hangs.collect(1, ("stopped", "asleep"), folder)
    return folder


@pytest.mark.parametrize(
    ("run", "states"),
    [("000-stopped-0", {"unresponsive", "dead", "missing"}), ("000-asleep-0", {"behind"})],
)
@pytest.mark.parametrize("answer", ["ras-1.json", "ras-1.txt"])
def test_nccl_names_the_rank_that_does_not_come(
    runs: Path, run: str, states: set[str], answer: str
) -> None:
    text = (runs / run / answer).read_text()
    ranks = ranks_of(text)
    assert [rank.rank for rank in ranks] == [0], text
    assert ranks[0].state in states
    assert ranks[0].node.startswith("10.77.")
    diagnosis = diagnose_paths([runs / run / answer])
    assert diagnosis.label == "peer-died-timeout"


@pytest.mark.parametrize("run", ["000-stopped-0", "000-asleep-0"])
def test_the_logs_of_the_others_name_it(runs: Path, run: str) -> None:
    diagnosis = diagnose_paths(sorted((runs / run).glob("rank-*.log")))
    assert diagnosis.label == "peer-died-timeout"
    assert "rank 0 " in diagnosis.notes[-1]
