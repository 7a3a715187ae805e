"""Whether the rank that holds the others up is named, from gloo's flight recorder on lab hosts::

    REMEDY_LAB_NAME=hangs remedy lab up -n 4
    REMEDY_LAB_NAME=hangs python -m benchmarks.hangs --runs 20 --save

or with ``--gpu`` from NCCL's recorder, its RAS service and the ranks' logs, on hosts that share one GPU.

Nine kinds of hang, so many runs of each, one rank a host; each rank in turn is the one that does not come.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.corpus import one_gpu_hangs
from benchmarks.harness import machine
from remedy.diagnose.logs import diagnose_paths
from remedy.lab.cluster import Lab
from remedy.lab.host import Host
from remedy.lab.paths import LabPaths
from remedy.verify.onhost.ras_answer import ranks_of

WORKER = Path(__file__).parent / "corpus" / "train_hang.py"
RESULTS = Path(__file__).parent / "results"
# What of a run names the rank: files of each run, and how the column is called.
WITNESSES = {
    "trace_rank_*": "dumps",
    "ras-*.json": "RAS as JSON",
    "ras-*.txt": "RAS as text",
    "rank-*.log": "logs",
}
PORT, SECONDS = 31000, 3600
PROMISED = 0.95
KINDS = ("asleep", "ended", "stopped", "other", "receive", "barrier", "busy", "lock", "exception")


def main() -> None:
    """Run, read the dumps, print the table; exit with 1 where fewer are named than promised."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, help="of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--keep", type=Path, help="keep the dumps in this folder")
    parser.add_argument("--read", type=Path, help="only read the dumps of this folder")
    parser.add_argument("--gpu", action="store_true", help="over NCCL, on the GPU of this machine")
    parser.add_argument(
        "--save", action="store_true", help="also write results/hangs.md, or hangs-nccl.md"
    )
    args = parser.parse_args()
    if args.read:
        table, share = judged(args.read)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder = args.keep or temporary
            if args.gpu:
                one_gpu_hangs.collect(args.runs, args.kinds, Path(folder))
            else:
                collect(Lab(LabPaths.of()).hosts(), args.runs, args.kinds, Path(folder))
            table, share = judged(Path(folder))
    print(table)
    if args.save:
        gpu = " --gpu" if args.gpu else ""
        head = (
            "# Hangs of which the rank is named\n\n"
            f"Made by `python -m benchmarks.hangs --runs {args.runs}{gpu} --save`, one round. "
            f"Commit {machine.commit()}, {machine.today()}.\n"
        )
        name = "hangs-nccl.md" if args.gpu else "hangs.md"
        (RESULTS / name).write_text(f"{head}\n{table}\n", encoding="utf-8")
    sys.exit(0 if share >= PROMISED else 1)


def collect(hosts: list[Host], runs: int, kinds: Sequence[str], folder: Path) -> None:
    """Run every kind on the hosts, and bring the dumps here.

    Args:
        hosts: one rank is run on each.
        runs: of each kind.
        kinds: of hangs.
        folder: where the dumps are put, a folder a run.
    """
    python = Lab(LabPaths.of()).record().python
    master = hosts[0].record.cluster_address

    def rank(number: int) -> None:
        host = hosts[number]
        host.write("/root/hang.py", WORKER.read_bytes())
        host.run(
            f"cd /root; rm -rf dumps; TORCH_FR_BUFFER_SIZE=200 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME="
            f"{host.record.cluster_interface} {python} hang.py --rank {number} --world {len(hosts)} "
            f"--master {master} --port {PORT} --runs {runs} --folder dumps --kinds {' '.join(kinds)}",
            seconds=SECONDS,
        )
        # As text: what a host says is read with its line ends made alike.
        data = base64.b64decode(host.must("cd /root; tar c dumps | base64"))
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(folder, filter="data")

    with ThreadPoolExecutor() as pool:
        list(pool.map(rank, range(len(hosts))))


def judged(folder: Path) -> tuple[str, float]:
    """Return a table of how often the rank was named, and the least share of all runs by any witness.

    Args:
        folder: with a folder for each run, called number, kind and rank.
    """
    runs = sorted({path.parent for pattern in WITNESSES for path in folder.rglob(pattern)})
    kinds = Counter(run.name.split("-")[1] for run in runs)
    witnesses = [name for name in WITNESSES if next(folder.rglob(name), None)]
    named: Counter[tuple[str, str]] = Counter()
    for run in runs:
        _, kind, bad = run.name.split("-")
        for pattern in witnesses:
            files = [path for path in sorted(run.glob(pattern)) if path.stat().st_size]
            named[kind, pattern] += _is_named(files, int(bad), by_ras=pattern.startswith("ras"))
    titles = " | ".join(WITNESSES[pattern] for pattern in witnesses)
    head = [
        f"| the rank that does not come | runs | {titles} |",
        f"| --- |{' ---: |' * (len(witnesses) + 1)}",
    ]
    rows = [
        f"| {kind} | {kinds[kind]} | {' | '.join(str(named[kind, w]) for w in witnesses)} |"
        for kind in KINDS
        if kinds[kind]
    ]
    sums = [sum(named[kind, w] for kind in kinds) for w in witnesses]
    total = f"| all | {len(runs)} | {' | '.join(map(str, sums))} |"
    return "\n".join([*head, *rows, total]), min(sums, default=0) / max(1, len(runs))


def _is_named(files: list[Path], bad: int, *, by_ras: bool) -> bool:
    """Return whether these files of a run name the rank, and no other."""
    if by_ras:
        answers = [{rank.rank for rank in ranks_of(path.read_text())} for path in files]
        return bool(answers) and all(ranks == {bad} for ranks in answers)
    diagnosis = diagnose_paths(files) if files else None
    if diagnosis is None or diagnosis.label != "peer-died-timeout" or not diagnosis.notes:
        return False
    return _names(diagnosis.notes[-1], bad)


def _names(note: str, bad: int) -> bool:
    """Return whether a sentence names this rank, and no other, as the one that is behind."""
    return note.startswith(f"rank {bad} stands at ") or f", and rank {bad} did not say so" in note


if __name__ == "__main__":
    main()
