"""Two controllers that change the same host at the same time, again and again.

Each has a folder and a journal of its own. What must hold: on the host the steps of one run are never between
those of another, one of two that meet is refused in words, and the host ends in order.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from remedy.audit.journal import FILE_NAME, verify_chain
from tests.crashes.hosts import APPLY, REMEDY, SLOW, Site

pytestmark = pytest.mark.lab

# By the host's lock, or by who reads the host; by name, or, where the other has only just begun, without; or
# because the other's changes still wait for their confirmation.
REFUSED = (
    "locked by another run: ",
    "is at work there since ",
    "about to change: the changes of run ",
)


@pytest.mark.parametrize("rounds", [2, pytest.param(50, marks=pytest.mark.full)])
def test_two_controllers_never_mix_their_steps(
    new_site: Callable[[int], Site], tmp_path: Path, rounds: int
) -> None:
    site = new_site(1)
    site.keep("")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        for name in ("inventory.py", "state.json"):
            shutil.copyfile(site.folder / name, folder / name)
    ended = sum((race(site, folders) for _ in range(rounds)), Counter[str]())
    assert ended["refused"], "the two never met"
    assert ended["changed"] >= rounds


def race(site: Site, folders: list[Path]) -> Counter[str]:
    """Let two controllers go at once, see that nothing is wrong, and return how they ended."""
    site.fresh()
    (host,) = site.hosts
    host.run(["sh", "-c", SLOW.format(seconds=0.1)])
    for folder in folders:
        shutil.rmtree(folder / ".remedy", ignore_errors=True)
    controllers = [
        subprocess.Popen(
            [str(REMEDY), *APPLY],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for folder in folders
    ]
    ended: Counter[str] = Counter()
    for controller, folder in zip(controllers, folders, strict=True):
        output = controller.communicate()[0]
        refused = controller.returncode == 4 and any(words in output for words in REFUSED)
        assert controller.returncode == 0 or refused, output
        ended["refused" if refused else "changed"] += 1
        assert verify_chain(folder / ".remedy" / FILE_NAME)[1] == ""
    lines = [json.loads(line) for line in host.must("cat /var/log/remedy.jsonl").splitlines()]
    runs = [run for run, _ in groupby(line["run"] for line in lines)]
    assert runs
    steps = "\n".join(json.dumps(line)[:300] for line in lines)
    assert len(runs) == len(set(runs)), f"the steps of two runs are interleaved:\n{steps}"
    assert ended["changed"], "nobody made the changes"
    assert site.remedy(*APPLY) == 0, "the next run does not find the host in order"
    return ended
