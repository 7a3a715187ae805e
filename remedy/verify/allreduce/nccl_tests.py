"""What a run proves whose engine leaves nothing but what it prints: nccl-tests' table against its ranks. Pure.

Every rank said over its own host's connection who it is before it became the test. The list of ranks that the
test prints must be exactly these, by process id; its bandwidths must be those of a world of that size; every
element of every size must have been checked and right; and it must have come to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from remedy.verify.allreduce import bandwidth as mark
from remedy.verify.allreduce.answers import HostReport, Who
from remedy.verify.allreduce.blame import names
from remedy.verify.allreduce.checks import Problem
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.onhost.engines import nccl_tests
from remedy.verify.onhost.engines.nccl_tests import Half, Printed
from remedy.verify.verdict import Bandwidth, Verdict

# nccl-tests prints two digits after the point, or three in all: so far may figures be from each other.
ROUNDING, SHARE = 0.011, 0.02


def judge(plan: RankPlan, reports: Mapping[str, HostReport]) -> tuple[Verdict, list[Problem]]:
    """The verdict without its sentence, and everything that keeps the run from being a proof.

    Args:
        plan: what was run.
        reports: of its hosts, by name.
    """
    first = reports[plan.hosts[0].name]
    seen = nccl_tests.read("\n".join(first.launcher.output if first.launcher else ()))
    ranks = [(host.name, rank.who) for host in plan.hosts for rank in reports[host.name].ranks]
    known = {who.rank: who for _, who in ranks if who is not None and who.nonce == plan.nonce}
    problems = [*_ends(plan, reports), *_members(plan, reports, seen, known), *_table(plan, seen)]
    listed = {device.rank for device in seen.devices if _is(device, known.get(device.rank))}
    rows = tuple(_bandwidth(plan, row) for row in seen.rows if row.in_place.time > 0)
    library = (
        f"{seen.library[:-4]}.{int(seen.library[-4:-2])}.{int(seen.library[-2:])}"
        if (seen.library.isdigit() and len(seen.library) > 4)
        else ""
    )
    verdict = Verdict(
        passed=not problems,
        engine=plan.engine,
        backend="nccl",
        world_size=len(listed),
        expected_world_size=plan.world,
        hosts=len({known[rank].boot_id for rank in listed}),
        expected_hosts=len(plan.hosts),
        sum_exact=bool(seen.rows)
        and not any(_wrong(half) for row in seen.rows for half in row[1:]),
        bandwidth=rows,
        # Of the largest size, so of a table that came to its end.
        busbw_gbps=rows[-1].busbw if rows and seen.out_of_bounds is not None else None,
        nccl=(library,) if library else (),
        software=(f"nccl-tests {seen.version}",) if seen.version else (),
        reason="",
        limit_gbps=plan.limit,
        min_busbw_gbps=plan.min_busbw,
    )
    return verdict, problems


def _ends(plan: RankPlan, reports: Mapping[str, HostReport]) -> Iterator[Problem]:
    """Hosts and a launcher that did not end by themselves and well."""
    for name, report in reports.items():
        if report.end is None:
            yield Problem(text=f"{name}: {report.lost}")
        elif report.end.how != "exited":
            yield Problem(text=f"{name}: ended by {report.end.how} {report.end.detail}".rstrip())
        if report.end and report.end.left:
            yield Problem(text=f"{name}: processes {report.end.left} could not be ended")
    launcher = reports[plan.hosts[0].name].launcher
    code = launcher.exit_code if launcher else None
    if code != 0:
        last = " ".join(launcher.log[-1:]) if launcher else ""
        yield Problem(text=f"mpirun ended with {code} {last}".rstrip())


def _members(
    plan: RankPlan, reports: Mapping[str, HostReport], seen: Printed, known: Mapping[int, Who]
) -> Iterator[Problem]:
    """Ranks that are not there, not of this run, or not where they should be."""
    number = 0
    for host in plan.hosts:
        whos = [rank.who for rank in reports[host.name].ranks if rank.who is not None]
        wanted = set(range(number, number + host.ranks))
        number += host.ranks
        if {who.rank for who in whos if who.nonce == plan.nonce} != wanted or len(whos) != len(
            wanted
        ):
            yield Problem(
                text=f"{host.name}: its ranks are {sorted(w.rank for w in whos)}, not {sorted(wanted)}"
            )
    machines: dict[str, set[str]] = {}
    for host in plan.hosts:
        for rank in reports[host.name].ranks:
            if rank.who:
                machines.setdefault(rank.who.boot_id, set()).add(host.name)
    for shared in machines.values():
        if len(shared) > 1:
            hosts = tuple(sorted(shared))
            yield Problem(text=f"{names(hosts)} are one machine (same boot-id)", hosts=hosts)
    if len(machines) > len(plan.hosts):
        yield Problem(text=f"{len(machines)} boot-ids on {len(plan.hosts)} hosts")
    listed = [device.rank for device in seen.devices]
    if listed != list(range(plan.world)):
        yield Problem(text=f"the test lists {len(listed)} ranks, and {plan.world} were started")
    strange = [str(d.rank) for d in seen.devices if not _is(d, known.get(d.rank))]
    if strange:
        yield Problem(
            text=f"the ranks {names(strange)} that the test lists are not those of this run"
        )
    if len({device.group for device in seen.devices}) > 1:
        yield Problem(text="the test split its ranks into groups")


def _is(device: nccl_tests.Device, who: Who | None) -> bool:
    """Whether a rank that the test lists is the one that said who it is (a name without its domain)."""
    return who is not None and (device.pid, device.host) == (
        who.pid,
        who.hostname.partition(".")[0],
    )


def _table(plan: RankPlan, seen: Printed) -> Iterator[Problem]:
    """What is missing from the table, or wrong in it."""
    sizes = nccl_tests.asked(plan.sizes_on("nccl"), seen.reduced)
    if not seen.rows:
        yield Problem(text="nothing was measured")
    elif [row.size for row in seen.rows] != sizes:
        yield Problem(
            text=f"{len(seen.rows)} sizes were measured, and not the {len(sizes)} asked for"
        )
    if seen.validation < 1:
        yield Problem(text="the test did not check its results")
    if seen.out_of_bounds is None:
        yield Problem(text="the test did not come to its end: there is no count of wrong values")
    elif seen.out_of_bounds:
        yield Problem(text=f"the test counts {seen.out_of_bounds} values out of bounds")
    for row in seen.rows:
        for half, where in ((row.out_of_place, "out-of-place"), (row.in_place, "in-place")):
            at = f"{row.size:,} bytes {where}"
            if half.wrong is None:
                yield Problem(text=f"{at}: the result was not checked")
            elif half.wrong:
                yield Problem(text=f"{at}: {half.wrong:g} elements are wrong")
            elif not _agrees(plan, row.size, half):
                yield Problem(
                    text=f"{at}: {half.time:g} us, {half.algbw:g} and {half.busbw:g} GB/s are not those "
                    f"of {plan.world} ranks"
                )
    if seen.rows:
        too_little = mark.missed(
            _busbw(plan, seen.rows[-1].size, seen.rows[-1].in_place), plan.min_busbw, plan.unjudged
        )
        if too_little:
            yield Problem(text=too_little, of_speed=True)


def _wrong(half: object) -> bool:
    return isinstance(half, Half) and half.wrong != 0


def _busbw(plan: RankPlan, size: int, half: Half) -> float:
    """GB/s from the time: algbw * 2(n-1)/n with algbw = S/t (doc/PERFORMANCE.md)."""
    return size / half.time / 1e3 * 2 * (plan.world - 1) / plan.world if half.time > 0 else 0.0


def _agrees(plan: RankPlan, size: int, half: Half) -> bool:
    """Whether a line's bandwidths are those that its size and time make with this many ranks."""
    if half.time <= 0:
        return False
    pairs = ((half.algbw, size / half.time / 1e3), (half.busbw, _busbw(plan, size, half)))
    return all(abs(said - right) <= ROUNDING + SHARE * right for said, right in pairs)


def _bandwidth(plan: RankPlan, row: nccl_tests.Row) -> Bandwidth:
    return Bandwidth(
        bytes=row.size,
        seconds=row.in_place.time / 1e6,
        algbw=row.size / row.in_place.time / 1e3,
        busbw=_busbw(plan, row.size, row.in_place),
        out_of_place_busbw=_busbw(plan, row.size, row.out_of_place) or None,
    )
