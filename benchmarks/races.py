"""Two controllers that change the same host at the same time, again and again.

    python -m benchmarks.races [ROUNDS]      as root; 50 rounds if nothing else is said

Each has a folder and a journal of its own. What must hold: on the host the steps of one run are never between
those of another, one of two that meet is refused in words, and the host ends in order. The table goes to
``results/races.md``; the exit status is 1 where anything of that does not hold.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path

from benchmarks.crashes.hosts import APPLY, REMEDY, SLOW, Site
from benchmarks.harness.cluster import Cluster
from remedy.audit.journal import FILE_NAME, verify_chain

RESULTS = Path(__file__).parent / "results" / "races.md"
# By name, or, where the other has only just begun, without.
REFUSED = "another run is at work there: "


def race(site: Site, folders: list[Path]) -> tuple[Counter[str], str]:
    """Let two controllers go at once; return how each ended, and what is wrong, "" for nothing."""
    site.fresh()
    (host,) = site.hosts
    host.run(["sh", "-c", SLOW.format(seconds=0.1)])
    controllers = []
    for folder in folders:
        shutil.rmtree(folder / ".remedy", ignore_errors=True)
        controllers.append(
            subprocess.Popen(
                [str(REMEDY), *APPLY],
                cwd=folder,
                env=site.cluster.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    ended: Counter[str] = Counter()
    wrong = []
    for controller, folder in zip(controllers, folders, strict=True):
        said = controller.communicate()[0]
        if controller.returncode == 0:
            ended["made the changes, or found them made"] += 1
        elif controller.returncode == 4 and REFUSED in said:
            ended["refused in words"] += 1
        else:
            wrong.append(f"exit code {controller.returncode}: {said[-300:]}")
        wrong += [problem] if (problem := verify_chain(folder / ".remedy" / FILE_NAME)[1]) else []
    lines = [json.loads(line) for line in host.must("cat /var/log/remedy.jsonl").splitlines()]
    runs = [run for run, _ in groupby(line["run"] for line in lines)]
    if len(runs) != len(set(runs)):
        wrong.append("the steps of two runs are interleaved")
    if os.linesep.join(runs) == "" or not ended["made the changes, or found them made"]:
        wrong.append("nobody made the changes")
    if site.remedy(*APPLY[:2], "--yes", "--no-verify") != 0:
        wrong.append("the next run does not find the host in order")
    return ended, "; ".join(wrong)


def main() -> None:
    """Run the rounds and write the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    total: Counter[str] = Counter()
    met = 0
    problems = []
    with tempfile.TemporaryDirectory() as name:
        cluster = Cluster(1, Path(name))
        try:
            cluster.up()
            Site(cluster).keep("")
            folders = []
            for number in range(2):
                folder = Path(name) / f"controller-{number}"
                folder.mkdir()
                shutil.copyfile(cluster.inventory, folder / "inventory.py")
                folders.append(folder)
            for number in range(rounds):
                ended, wrong = race(Site(cluster), folders)
                total += ended
                met += bool(ended["refused in words"])
                if wrong:
                    problems.append(f"round {number}: {wrong}")
                print("." if not wrong else f"\n{problems[-1]}", end="", flush=True)
        finally:
            cluster.down()
    text = (
        "# Two controllers at once on one host\n\nMade by `python -m benchmarks.races`.\n\n"
        f"| | |\n|---|---|\n| rounds | {rounds} |\n| rounds in which the two met | {met} |\n"
        + "".join(f"| controllers that {how} | {count} |\n" for how, count in sorted(total.items()))
        + f"| rounds in which steps were interleaved, or anything else was wrong | {len(problems)} |\n"
    )
    RESULTS.write_text(text, encoding="utf-8")
    print(f"\n{text}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
