"""Run the faults of the corpus on lab hosts and keep the logs that came out.

Needs root and a lab of three hosts::

    REMEDY_LAB_NAME=corpus remedy lab up -n 3
    REMEDY_LAB_NAME=corpus python -m benchmarks.collect_corpus
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.corpus.scenario import Scenario
from benchmarks.corpus.scenarios import scenarios
from remedy.errors import LabError
from remedy.lab.cluster import Lab
from remedy.lab.host import Host
from remedy.lab.paths import LabPaths

CORPUS = Path(__file__).parents[1] / "tests" / "diagnose" / "corpus"
PROGRAMS = tuple(Path(__file__).with_name("corpus").glob("train*.py"))
INDEX = "index.tsv"
PYTHON = "/usr/local/share/python/3.11"
"""Where the interpreter below the environment seems to lie, in logs that show it."""
HEAD = "file\tlabel\tsecondary\tcommand\n"


class Collector:
    """One lab, and the folder that logs are kept in.

    Args:
        lab: three hosts.
        folder: of the corpus.
    """

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.hosts = {host.name: host for host in lab.hosts()}
        self.lab = lab
        self.folder = folder
        self.environment = next(
            bind
            for bind in self.hosts["gpu01"].lab.binds
            if "pyvenv.cfg" in bind or (Path(bind) / "pyvenv.cfg").exists()
        )

    def has(self, framework: str) -> bool:
        """Whether the hosts have a framework, or an environment of that name below theirs."""
        if (Path(self.environment) / framework / "pyvenv.cfg").exists():
            return True
        return any(Path(self.environment).glob(f"lib/python3*/site-packages/{framework}"))

    def collect(self, scenario: Scenario) -> list[str]:
        """Break, run, keep, and give back the rows of the index."""
        self.lab.reset(*scenario.hosts)
        hosts = [self.hosts[name] for name in scenario.hosts]
        table = "".join(f"{h.record.cluster_address} {h.name}\\n" for h in hosts)
        commands = {}
        # A step of Slurm runs on hosts that take no part otherwise.
        for host in self.hosts.values():
            for program in PROGRAMS:
                host.write(f"/root/{program.name}", program.read_bytes())
        for number, host in enumerate(hosts):
            fill = {
                "i": number,
                "n": len(hosts),
                "p": 1,
                "m": hosts[0].record.cluster_address,
                "a": host.record.cluster_address,
                "h": host.name,
                "table": table,
                "net": host.record.cluster_address.split(".")[2],
            }
            for key in ("*", host.name):
                if key in scenario.setup:
                    done = host.run(f"cd /root; {scenario.setup[key].format(**fill)}")
                    if done.returncode:
                        print(f"  setup on {host.name}: {done.stderr.strip()}", file=sys.stderr)
            text = scenario.only.get(host.name, scenario.command)
            names_hosts = len(hosts) > 1 or "{net}" in text or "{m}" in text or "{i}" in text
            commands[host.name] = text.format(**fill) if names_hosts else text
        for name, faults in scenario.fault.items():
            self.lab.break_(name, faults)
        with ThreadPoolExecutor() as pool:
            logs = list(
                pool.map(lambda host: self._run(host, commands[host.name], scenario.seconds), hosts)
            )
        log_by_name = {f"{host.name}.log": log for host, log in zip(hosts, logs, strict=True)}
        for host in hosts if scenario.folder else ():
            for name in host.must(f"cd /root/{scenario.folder} && ls -1 || true").split():
                text = host.read(f"/root/{scenario.folder}/{name}").decode("utf-8", "replace")
                log_by_name[f"{host.name}/{name}"] = self._placeless(text)
        return self._keep(scenario, log_by_name, commands)

    def _run(self, host: Host, command: str, seconds: int) -> str:
        path = (
            f"{self.environment}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        )
        script = (
            f"cd /root; export PATH={path} OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore; exec 2>&1; "
            f"timeout -k 25 {seconds} bash -c '{_quoted(command)}'"
        )
        done = host.run(script, seconds=seconds + 35)
        return self._placeless(done.stdout)

    def _placeless(self, text: str) -> str:
        """Where the environment lies is of no interest, and differs from machine to machine."""
        text = text.replace(self.environment, "/opt/venv").replace(sys.base_prefix, PYTHON)
        return re.sub(r'[^\s"]*/lib/python3', "/opt/venv/lib/python3", text)

    def _keep(
        self, scenario: Scenario, logs: dict[str, str], commands: dict[str, str]
    ) -> list[str]:
        first = commands[scenario.hosts[0]]
        if len(logs) == 1:
            (text,) = logs.values()
            (self.folder / f"{scenario.name}.log").write_text(text, encoding="utf-8")
            return [_row(f"{scenario.name}.log", scenario.label, scenario.secondary, first)]
        folder = self.folder / scenario.name
        shutil.rmtree(folder, ignore_errors=True)  # ranks' logs have other names in each run
        for name, text in logs.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        rows = [_row(scenario.name, scenario.label, scenario.secondary, first)]
        rows += [
            _row(f"{scenario.name}/{name}.log", label, "", commands[name])
            for name, label in scenario.alone.items()
        ]
        return rows


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")


def _row(path: str, label: str, secondary: str, command: str) -> str:
    return f"{path}\t{label}\t{secondary}\t{command}\n"


def main() -> None:
    """Collect all scenarios, or those whose name begins with one of the words given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of scenario names; none: all")
    parser.add_argument("--hosts", type=int, choices=(1, 2), help="only scenarios on so many hosts")
    parser.add_argument("--folder", type=Path, default=CORPUS)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    index = args.folder / INDEX
    rows: dict[str, str] = {}
    if index.exists():
        rows = {
            line.split("\t")[0]: line for line in index.read_text().splitlines(keepends=True)[1:]
        }
    collector = Collector(Lab(LabPaths.of()), args.folder)
    for scenario in scenarios():
        if args.names and not scenario.name.startswith(tuple(args.names)):
            continue
        if args.hosts and len(scenario.hosts) != args.hosts:
            continue
        if not collector.has(scenario.needs):
            continue
        print(scenario.name, file=sys.stderr, flush=True)
        try:
            made = collector.collect(scenario)
        except LabError as error:  # a program that does not end; the others are worth having
            print(f"  {error.message}", file=sys.stderr)
            continue
        for row in made:
            rows[row.split("\t")[0]] = row
        index.write_text(HEAD + "".join(rows[key] for key in sorted(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
