"""What was left in files of the variables that a launcher sets. Not a remedy itself.

A launcher gives its processes their rank, the size of the world and where to meet. In a file that sessions read
the same variables give every later job the numbers of an old one. On a single host that is enough for all ranks
to wait for one that never comes, and no launcher says a word about it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from remedy.deploys._environment import Surroundings, Wish
from remedy.deploys._launched import of_job, of_launcher, of_process
from remedy.deploys._settings import SESSION, Setting, settings, switched_off, targets
from remedy.plan import Fleet, FleetBench, once_a_fleet
from remedy.text import fold
from remedy.values import Unknown

LABEL = "rank-mismatch"
# With a host's own address as their value they are right for every job of that host.
_OWN_ADDRESS = frozenset(("POD_IP", "MS_WORKER_IP"))
EFFECT = "only a launcher sets it, for its own processes; in a file every later job gets it"


def left_behind(around: Surroundings, wishes: Mapping[str, Wish]) -> Iterator[Setting]:
    """Yield the lines of a host's files that give its sessions what only a launcher sets.

    What belongs to a job (where its ranks meet, how many they are) may be meant where most hosts say the same.
    """
    fleet = around.bench.fleet
    mine = fleet.addresses[around.bench.host.host].address
    for setting in around.settings:
        if setting.ours or setting.name in wishes:
            continue
        if setting.name in _OWN_ADDRESS and setting.value == mine:
            continue
        chosen = (setting.name, setting.value) in _agreed(fleet)
        if of_process(setting.name) or (of_launcher(setting.name) and not chosen):
            yield setting


def name_left_behind(around: Surroundings, wishes: Mapping[str, Wish]) -> None:
    """Name the lines that remedy does not change, and what sessions have that no line explains."""
    bench = around.bench
    for setting in left_behind(around, wishes):
        if setting.target is None or setting.target.path != SESSION:
            bench.blocked(
                f"{setting.path} sets {setting.name}={setting.value}: {EFFECT}",
                setting.shown,
                f"Remove line {setting.line} of {setting.path}.",
                label=LABEL,
            )
    environment = bench.host.environment
    if isinstance(environment, Unknown):
        return
    explained = {setting.name for setting in around.settings}
    explained |= {name for name, _ in switched_off(bench.host, around.targets)}
    mine = bench.fleet.addresses[bench.host.host].address
    for name in sorted(filter(of_launcher, environment.keys() - explained - wishes.keys())):
        if of_job(name) and environment[name] in _had_by_most(bench.fleet).get(name, ()):
            if len(bench.fleet.states) == 1 < len(bench.fleet.inventory.names):
                bench.report(
                    f"sessions over ssh have {name}={environment[name]}; what the others have was not read",
                    "no file that the probe reads sets it",
                    "Read the others as well: remedy check INVENTORY. One that has another value hangs.",
                    label=LABEL,
                )
            continue
        if name not in _OWN_ADDRESS or environment[name] != mine:
            bench.blocked(
                f"sessions over ssh have {name}={environment[name]}: {EFFECT}",
                "no file that the probe reads sets it",
                "Check the user's shell start-up files, PAM's own files and the site's modules.",
                label=LABEL,
            )


@once_a_fleet
def _agreed(fleet: Fleet) -> Mapping[tuple[str, str], Sequence[str]]:
    """Return the values of variables of a job that files of more than half of the hosts set, with those hosts.

    Those are somebody's choice; what a few hosts say besides is left over.
    """
    hosts: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for name, state in fleet.states.items():
        for setting in settings(state, targets(state, user_files=False)):
            if of_launcher(setting.name) and not of_process(setting.name):
                hosts[setting.name, setting.value][name] = None
    most = len(fleet.states) / 2
    return {value: tuple(names) for value, names in hosts.items() if len(names) > most}


@once_a_fleet
def _had_by_most(fleet: Fleet) -> Mapping[str, frozenset[str]]:
    """Return the values of variables of a job that the sessions of more than half of the hosts have."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for state in fleet.states.values():
        if not isinstance(state.environment, Unknown):
            for name in filter(of_job, state.environment):
                counts[name][state.environment[name]] += 1
    most = len(fleet.states) / 2
    return {
        name: frozenset(value for value, count in values.items() if count > most)
        for name, values in counts.items()
    }


def report_agreed(bench: FleetBench[Any]) -> None:
    """Report the variables of a job that files of most hosts set alike, and which hosts lack them."""
    states = bench.fleet.states
    wished = getattr(bench.fleet.spec.sections.get("environment"), "variables", {})
    for (name, value), hosts in sorted(_agreed(bench.fleet).items()):
        agreed = frozenset(hosts)
        others = [host for host in states if host not in agreed]
        if name not in wished and (name != "RANK_TABLE_FILE" or others):
            bench.report(
                f"{name} is set in files of {_where(bench.fleet, hosts)}, and a launcher sets it for each job",
                [
                    f"{fold(hosts)}: {name}={value}",
                    *([f"{fold(others)}: not so"] if others else []),
                ],
                "Set it alike on all hosts, or remove it: it counts where a launcher sets none.",
                label=LABEL,
            )


def _where(fleet: Fleet, hosts: Sequence[str]) -> str:
    """Return on which hosts something is so, in words; nothing is said of hosts that were not read."""
    read = len(fleet.states)
    if len(hosts) < read:
        return f"{len(hosts)} of {read} hosts"
    if read == len(fleet.inventory.names):
        return "all hosts" if read > 1 else "the host"
    return (
        f"{fold(hosts)}; what the others say was not read"
        if read == 1
        else "all hosts that were read"
    )
