"""How long remedy takes on a fleet, side by side with what else could be used.

Everything is measured in one run on the same lab hosts: remedy, plain pyinfra running the probe as a fact (the
floor), pyinfra's own operations, a playbook of ansible-core, and bare ssh logins. Results go to
results/fleet.md and results/fleet.json beside this file. Needs Linux, root, and the environment that remedy is
installed in.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import remedy
from benchmarks.harness import contenders, machine
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.contenders import Contender
from benchmarks.harness.figures import Spread
from benchmarks.harness.fleet_page import PROBE_HOSTS, PROBE_RUNS, goals, page, probe_time
from benchmarks.harness.report import Results, as_json, as_text, from_json
from benchmarks.harness.run import BenchmarkError, measured
from remedy.errors import RemedyError
from remedy.lab.paths import NAME_VARIABLE

HERE = Path(__file__).parent
RESULTS = HERE / "results"
LAB = "bench"


def main() -> int:
    """Measure, print, write; return 1 when a goal was missed, 2 when nothing could be measured."""
    options = _options()
    if options.rewrite:
        results = from_json((RESULTS / "fleet.json").read_text(encoding="utf-8"))
        results.goals = goals(results, probe_time(results))
        _write(results)
        return 1 if results.missed else 0
    os.environ.setdefault(NAME_VARIABLE, LAB)
    with tempfile.TemporaryDirectory(prefix="remedy-benchmark.") as folder:
        cluster = Cluster(options.hosts, Path(folder))
        try:
            results = Benchmark(cluster, options).run()
        except (BenchmarkError, RemedyError, subprocess.CalledProcessError) as error:
            print(f"no result: {error}", file=sys.stderr)
            return 2
        finally:
            if not options.keep:
                cluster.down()
    print(as_text(results))
    if not options.no_write:
        _write(results)
    return 1 if results.missed else 0


def _write(results: Results) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "fleet.json").write_text(as_json(results), encoding="utf-8")
    (RESULTS / "fleet.md").write_text(page(results), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=64, help="how many lab hosts (default: 64)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (default: 5)")
    parser.add_argument(
        "--first-rounds", type=int, default=3, help="runs of each on fresh hosts (default: 3)"
    )
    parser.add_argument(
        "--ansible-rounds", type=int, default=2, help="the same for ansible, which takes minutes"
    )
    parser.add_argument("--skip-ansible", action="store_true", help="leave ansible out")
    parser.add_argument("--keep", action="store_true", help="leave the lab running")
    parser.add_argument("--no-write", action="store_true", help="print the figures only")
    parser.add_argument(
        "--rewrite", action="store_true", help="measure nothing: write the page from the samples"
    )
    return parser.parse_args()


class Benchmark:
    """One run of everything.

    Args:
        cluster: the hosts.
        options: the command line's.
    """

    def __init__(self, cluster: Cluster, options: argparse.Namespace) -> None:
        self.cluster = cluster
        self.options = options

    def run(self) -> Results:
        """Measure everything.

        Raises:
            BenchmarkError: a command failed, or changed something when there was nothing to do.
            LabError: the hosts cannot be had.
        """
        load = machine.load()
        _say(f"booting {self.options.hosts} hosts")
        self.cluster.up()
        tool = contenders.remedy(self.cluster)
        compileall.compile_dir(Path(remedy.__file__).parent, quiet=1)  # as pip does
        script = self._script(tool)
        changing = [
            tool,
            contenders.pyinfra(self.cluster),
            contenders.pyinfra_blind(self.cluster),
        ]
        if not self.options.skip_ansible:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            changing.append(contenders.ansible(self.cluster, cache / "remedy-benchmark"))
        everyone = [
            tool,
            contenders.floor(self.cluster, script),
            *changing[1:],
            contenders.ssh(self.cluster),
        ]
        results = Results(
            title=f"remedy on {self.options.hosts} hosts",
            command=_command(),
            date=machine.today(),
            commit=machine.commit(),
            machine=machine.describe(),
            versions=_versions(changing),
            load=load,
            titles={contender.key: contender.title for contender in everyone},
        )
        cpu = self.cluster.probe_milliseconds(script.read_text("utf-8"), PROBE_RUNS, PROBE_HOSTS)
        _say(f"probe: {Spread.of(cpu).text(1)} ms of CPU")
        for number in range(self.options.first_rounds):
            for contender in _turned(changing, number):
                if number < self._rounds(contender, self.options.first_rounds):
                    self.cluster.fresh()
                    self._measure(results, contender, number, first=True)
        for contender in changing:
            # Whatever the last first run left out is made now, so that from here on nobody has anything to do.
            assert contender.first is not None
            measured(contender.first, self._environment(contender))
        for number in range(self.options.rounds):
            for contender in _turned(everyone, number):
                if number < self._rounds(contender, self.options.rounds):
                    self._measure(results, contender, number, first=False)
        results.goals = goals(results, Spread.of(cpu))
        return results

    def _script(self, tool: Contender) -> Path:
        """Write the probe's script to a file, as remedy would send it."""
        path = self.cluster.folder / "probe.sh"
        command = (sys.executable, str(HERE / "fleet/render_probe.py"), str(self.cluster.inventory))
        path.write_text(measured(command, self._environment(tool))[1], encoding="utf-8")
        return path

    def _measure(self, results: Results, contender: Contender, number: int, *, first: bool) -> None:
        command = contender.first if first else contender.again
        assert command is not None
        sample, text = measured(command, self._environment(contender))
        if not first and not contender.idle(text):
            raise BenchmarkError(
                f"{contender.title} changed something when there was nothing to do"
            )
        (results.first if first else results.again).setdefault(contender.key, []).append(sample)
        kind = "fresh hosts" if first else "nothing to do"
        _say(
            f"round {number + 1}, {kind}: {contender.title}: {sample.seconds:.2f} s, "
            f"{sample.cpu_seconds:.1f} s of CPU, {sample.peak_mib:.0f} MiB"
        )

    def _environment(self, contender: Contender) -> dict[str, str]:
        return {**self.cluster.environment, **contender.environment}

    def _rounds(self, contender: Contender, rounds: int) -> int:
        return min(rounds, self.options.ansible_rounds) if contender.key == "ansible" else rounds


def _turned(items: Sequence[Contender], by: int) -> list[Contender]:
    """Return the items in another order each round: turned by one, and every other round backwards."""
    turned = [*items[by % len(items) :], *items[: by % len(items)]]
    return turned if by % 2 == 0 else turned[::-1]


def _command() -> str:
    """Return this command line, as one types it in a checkout."""
    return " ".join(["python -m benchmarks.fleet", *sys.argv[1:]])


def _versions(changing: Sequence[Contender]) -> dict[str, str]:
    versions = {"remedy": version("remedy-cluster"), "pyinfra": version("pyinfra")}
    for contender in changing:
        if contender.key == "ansible":
            assert contender.first is not None
            python = Path(contender.first[0]).with_name("python")
            ask = "from importlib.metadata import version; print(version('ansible-core'))"
            answer = subprocess.run(
                [str(python), "-c", ask], capture_output=True, text=True, check=True
            )
            versions["ansible-core"] = answer.stdout.strip()
    return versions


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
