"""Ports for new sockets: the same range on all hosts, and no launcher's port among them.

Cures: a launcher that now and then finds its port in use, because the kernel gave it to an outgoing connection
(29500 lies in a range that somebody widened to 1024-65535; HCCL's 60000-60031 lie in the default one); a range
that is narrower on one host than what the firewalls let in.

The range is left alone unless the spec names one. Launchers' ports that lie inside a host's range are reserved:
they are added to what is reserved already, never put in its place. A reserved port can still be bound by
whoever asks for exactly that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from remedy.deploys import _frameworks
from remedy.firewall import spans
from remedy.firewall.ports import (
    PORTS_FILE,
    RANGE_KEY,
    RESERVED_KEY,
    VERIFICATION,
    Need,
    Ports,
    boot_range,
    kernel_range,
    parse_ports,
    reserved,
)
from remedy.plan import Fleet, Workbench, kernel, remedy
from remedy.probe import HostState, Sysctls
from remedy.spec import SpecSection

PATH = PORTS_FILE
FILE = kernel.SettingsFile(PATH, "ports for new sockets, and those that launchers listen on")
FEWEST = 100


def _bounds(value: object) -> object:
    return list(parse_ports(value)) if isinstance(value, str) else value


def _wide_enough(bounds: tuple[int, int]) -> tuple[int, int]:
    low, high = bounds
    if not 1024 <= low <= high <= 65535:
        raise ValueError(f"a range lies between 1024 and 65535, the lower end first: {low}-{high}")
    if high - low + 1 < FEWEST:
        raise ValueError(f"{low}-{high} are only {high - low + 1} ports, fewer than {FEWEST}")
    return bounds


_RANGE = {
    "description": 'two ports from 1024, such as "50000-60999", or null',
    "anyOf": [
        {"type": "string", "pattern": r"^ *[0-9]{4,5} *- *[0-9]{4,5} *$"},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        {"type": "null"},
    ],
}


class PortRangeSpec(SpecSection):
    """``range``: ports for new sockets on all hosts ("50000-60999"); None leaves each host its own.

    ``reserve``: ports that are never given to a new socket by chance, beyond those of the frameworks in use
    (``firewall.frameworks``, ``paddle.ports``) that lie in the range.
    """

    range: Annotated[
        tuple[int, int] | None,
        BeforeValidator(_bounds),
        AfterValidator(lambda bounds: None if bounds is None else _wide_enough(bounds)),
        WithJsonSchema(_RANGE, mode="validation"),
        Field(examples=["50000-60999", "1024-65535"]),
    ] = None
    reserve: tuple[Ports, ...] = ()


def target_settings(
    fleet: Fleet, state: HostState, host: Sysctls, spec: PortRangeSpec
) -> dict[str, str]:
    """Return the settings that a host must have, now and at boot; none where nothing is asked or wrong."""
    target = {}
    if spec.range is not None:
        target[RANGE_KEY] = f"{spec.range[0]} {spec.range[1]}"
    at_risk = spans.merge([*_at_risk(fleet, state, host, spec), *map(parse_ports, spec.reserve)])
    if at_risk:
        winner = host.winner(RESERVED_KEY)
        at_boot = () if winner is None else reserved(winner.value)
        merged = spans.merge([*at_risk, *reserved(host.live.get(RESERVED_KEY, "")), *at_boot])
        target[RESERVED_KEY] = ",".join(spans.port_texts(merged, "-"))
    return target


def _at_risk(fleet: Fleet, state: HostState, host: Sysctls, spec: PortRangeSpec) -> spans.Spans:
    """Return the launchers' ports that the kernel may give away, now or after the next boot."""
    ranges = (spec.range,) if spec.range else (kernel_range(host), boot_range(host))
    every = spans.merge(bounds for bounds in ranges if bounds)
    return spans.meet(every, spans.merge((n.low, n.high) for n in _fixed(fleet, state)))


def _fixed(fleet: Fleet, state: HostState) -> Iterator[Need]:
    yield from (need for need in _frameworks.needs(fleet, state) if need.fixed)
    yield VERIFICATION


@remedy(
    "Ports for new sockets",
    PortRangeSpec,
    cures=("firewall-ports", "master-port-in-use"),
    order=30,
    reads=(PATH,),
)
def port_range(bench: Workbench[PortRangeSpec]) -> None:
    """Decide what a host's range and its reserved ports have to be."""
    host, settings = bench.host, bench.settings
    if settings.range is None and not settings.reserve and not isinstance(host.sysctls, Sysctls):
        return
    sysctls = bench.need(host.sysctls, "the kernel's settings")
    target = target_settings(bench.fleet, host, sysctls, settings)
    if not target:
        _withdraw(bench, sysctls)
        return
    missing = [key for key in target if key not in sysctls.live]
    if missing:
        fix = f"See that the probe can read it: sysctl {missing[0]}"
        bench.unknown(f"could not read {missing[0]}", fix=fix)
        return
    _note_range(bench, sysctls, target)
    _note_reserved(bench, sysctls, target)
    if not FILE.lasts(bench, target) and not bench.findings:
        title = "after a reboot, the ports for new sockets will be others"
        bench.drift(title, _evidence(sysctls, target))
    if bench.findings:
        because = bench.findings[0]
        if not FILE.keep(bench, target, because=because):
            return
        kernel.set_live(bench, target, because=because)
    FILE.note_overruled(bench, target)


def _withdraw(bench: Workbench[PortRangeSpec], sysctls: Sysctls) -> None:
    """Plan that the file goes, unless a host that was not read may need the ports that it reserves."""
    reserves = any(line.path == PATH and line.key == RESERVED_KEY for line in sysctls.persisted)
    if not reserves or _frameworks.is_settled(bench.fleet):
        FILE.withdraw(bench, "the values in force stay until the next boot")


def _note_range(
    bench: Workbench[PortRangeSpec], sysctls: Sysctls, target: Mapping[str, str]
) -> None:
    live = sysctls.live.get(RANGE_KEY, "")
    if target.get(RANGE_KEY, live) != live:
        title = f"new sockets get ports from {live.replace(' ', '-')}, the spec says otherwise"
        bench.drift(title, f"{RANGE_KEY} = {live}")


def _note_reserved(
    bench: Workbench[PortRangeSpec], sysctls: Sysctls, target: Mapping[str, str]
) -> None:
    live = sysctls.live.get(RESERVED_KEY, "")
    if target.get(RESERVED_KEY, live) == live:
        return
    known = (kernel_range(sysctls), boot_range(sysctls))
    bounds = spans.merge(
        span for span in ((bench.settings.range,) if bench.settings.range else known) if span
    )
    now = reserved(live)
    at_risk = [
        need
        for need in _fixed(bench.fleet, bench.host)
        if spans.meet(bounds, ((need.low, need.high),))
        and spans.minus(((need.low, need.high),), now)
    ]
    title = "ports that the spec reserves are not reserved"
    if at_risk:
        title = "the kernel may give ports that launchers need to outgoing connections"
    evidence = [
        f"{RANGE_KEY} = {sysctls.live.get(RANGE_KEY, 'unknown')}",
        *_at_boot(sysctls),
        f"{RESERVED_KEY} = {live or 'none'}",
        *(f"needed: {need}" for need in at_risk),
    ]
    bench.drift(title, evidence, label="master-port-in-use")


def _at_boot(sysctls: Sysctls) -> Iterator[str]:
    line = sysctls.winner(RANGE_KEY)
    if line is not None and line.value != sysctls.live.get(RANGE_KEY):
        yield f"after the next boot: {RANGE_KEY} = {line.value} ({line.path}:{line.line})"


def _evidence(sysctls: Sysctls, target: Mapping[str, str]) -> Iterator[str]:
    for key, value in target.items():
        winner = sysctls.winner(key)
        if winner is None:
            yield f"{key}: no file sets it, needs {value}"
        elif winner.value != value:
            yield f"{winner.path}:{winner.line}: {key} = {winner.value}, needs {value}"


port_range.promises(FILE.promise)
port_range.observes(kernel.observation)
