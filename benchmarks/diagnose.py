"""How right and how quick `remedy diagnose` is::

python -m benchmarks.diagnose                      the corpus of the tests
python -m benchmarks.diagnose LOGS                 any folder with an index.tsv (file, label, secondary)
python -m benchmarks.diagnose --calibration TESTS  how often each word is right, leading entries taken away
python -m benchmarks.diagnose --speed 2000         2 GB of ordinary training output, beside grep -F -f
python -m benchmarks.diagnose --engines 200        what finds the literals, and what else could
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.diagnosing import accuracy, calibration, engines, speed

CORPUS = Path(__file__).parents[1] / "tests" / "diagnose" / "corpus"
RESULTS = Path(__file__).with_name("results")


def main() -> None:
    """Measure what is asked for; exit with 1 where the figures are below what is promised."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=CORPUS)
    parser.add_argument(
        "--calibration", type=Path, metavar="TESTS", help="measure how sure answers are instead"
    )
    parser.add_argument("--quick", action="store_true", help="without leaving families out")
    parser.add_argument(
        "--speed", type=int, metavar="MB", help="measure speed on so many megabytes instead"
    )
    parser.add_argument(
        "--engines", type=int, metavar="MB", help="compare engines on so many megabytes instead"
    )
    parser.add_argument("--save", metavar="NAME", help=f"also write {RESULTS.name}/NAME.json")
    args = parser.parse_args()
    if args.speed:
        figures = speed.measure(args.speed)
        print(speed.table(figures))
        good = speed.good_enough(figures)
    elif args.engines:
        figures, good = engines.measure(args.engines), True
        print(engines.text(figures))
    elif args.calibration:
        figures = calibration.measure(args.calibration)
        print(calibration.text(figures))
        good = calibration.good_enough(figures)
    else:
        if (wrong := accuracy.unfit(args.folder)) is not None:
            parser.error(wrong)
        table = accuracy.measure(args.folder, leave_out=not args.quick)
        print(accuracy.text(table))
        figures, good = table.figures(), table.good_enough()
    if args.save:
        RESULTS.mkdir(exist_ok=True)
        if args.engines:
            table_file = RESULTS / f"{args.save}.md"
            table_file.write_text(f"{engines.text(figures)}\n", encoding="utf-8")
        (RESULTS / f"{args.save}.json").write_text(
            json.dumps(figures, indent=2) + "\n", encoding="utf-8"
        )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
