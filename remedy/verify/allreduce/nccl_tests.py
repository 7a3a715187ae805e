"""What a run proves whose engine leaves nothing but what it prints: nccl-tests' table against its ranks. Pure.

Every rank reported over its own host's connection who it is before it became the test. The list of ranks
that the test prints must be exactly these, by process id; its bandwidths must be those of a world of that
size; every element of every size must have been checked and right; and it must have come to its end. The
table is read from the formats of nccl-tests' src/util.cu (snapshot a0b82b2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from remedy.text import counted, is_number, listed
from remedy.verify.allreduce.answers import AgentReport, ProcessIdentity
from remedy.verify.allreduce.bandwidth import shortfall
from remedy.verify.allreduce.checks import bad_ends, shared_machines
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.verdict import Bandwidth, Culprit, Verdict, culprit

# nccl-tests prints two digits after the point, or three in all: so far may figures be from each other.
ROUNDING, SHARE = 0.011, 0.02


class Device(NamedTuple):
    """One rank, as the test lists it."""

    rank: int
    group: int
    pid: int
    host: str
    gpu: str


class TableHalf(NamedTuple):
    """Out of place or in place: microseconds, GB/s, and wrong elements (None: not checked)."""

    time: float
    algbw: float
    busbw: float
    wrong: float | None


class TableRow(NamedTuple):
    """One size (bytes) of the table."""

    size: int
    out_of_place: TableHalf
    in_place: TableHalf


class PrintedTable(NamedTuple):
    """All that the test printed; ``validation`` is how often it checked, ``reduced`` its own last size."""

    version: str
    library: str
    validation: int
    devices: list[Device]
    rows: list[TableRow]
    out_of_bounds: int | None
    reduced: int | None


def judge_table(
    plan: RankPlan, reports: Mapping[str, AgentReport]
) -> tuple[Verdict, list[Culprit], Culprit | None]:
    """Judge the table: figures, all that keeps the run from being a proof, and what is wrong with its speed.

    Args:
        plan: what was run.
        reports: of its hosts, by name.
    """
    first = reports[plan.hosts[0].name]
    table = read_table("\n".join(first.launcher.output if first.launcher else ()))
    processes = (rank.process for host in plan.hosts for rank in reports[host.name].ranks)
    known = {
        process.rank: process
        for process in processes
        if process is not None and process.nonce == plan.nonce
    }
    wrong = [
        *_bad_ends(plan, reports),
        *_strange_ranks(plan, reports),
        *_strange_list(plan, table, known),
        *_strange_table(plan, table),
        *_strange_rows(plan, table),
    ]
    return _figures(plan, table, known), wrong, _too_slow(plan, table)


def _figures(plan: RankPlan, table: PrintedTable, known: Mapping[int, ProcessIdentity]) -> Verdict:
    listed_ranks = {d.rank for d in table.devices if _is(d, known.get(d.rank))}
    rows = tuple(_bandwidth(plan, row) for row in table.rows if row.in_place.time > 0)
    library = table.library
    if is_number(library) and len(library) > 4:
        library = f"{library[:-4]}.{int(library[-4:-2])}.{int(library[-2:])}"
    else:
        library = ""
    halves = [half for row in table.rows for half in (row.out_of_place, row.in_place)]
    return Verdict(
        passed=False,
        reason="",
        engine=plan.engine,
        backend="nccl",
        world_size=len(listed_ranks),
        expected_world_size=plan.world,
        hosts=len({known[rank].boot_id for rank in listed_ranks}),
        expected_hosts=len(plan.hosts),
        sum_exact=bool(halves) and all(half.wrong == 0 for half in halves),
        bandwidth=rows,
        # Of the largest size, so of a table that came to its end.
        busbw_gbps=rows[-1].busbw if rows and table.out_of_bounds is not None else None,
        nccl=(library,) if library else (),
        software=(f"nccl-tests {table.version}",) if table.version else (),
        limit_gbps=plan.limit,
        min_busbw_gbps=plan.min_busbw,
    )


def _bad_ends(plan: RankPlan, reports: Mapping[str, AgentReport]) -> Iterator[Culprit]:
    """Hosts and a launcher that did not end by themselves and well."""
    for name, report in reports.items():
        yield from bad_ends(name, report)
    launcher = reports[plan.hosts[0].name].launcher
    code = launcher.exit_code if launcher else None
    if code != 0:
        last = " ".join(launcher.log[-1:]) if launcher else ""
        yield culprit(f"mpirun ended with {code} {last}".rstrip())


def _strange_ranks(plan: RankPlan, reports: Mapping[str, AgentReport]) -> Iterator[Culprit]:
    """Ranks that are not there, not of this run, or not where they belong."""
    number = 0
    boot_ids: list[tuple[str, str]] = []
    for host in plan.hosts:
        processes = [rank.process for rank in reports[host.name].ranks if rank.process is not None]
        boot_ids += [(host.name, process.boot_id) for process in processes]
        expected = set(range(number, number + host.ranks))
        number += host.ranks
        of_this_run = {process.rank for process in processes if process.nonce == plan.nonce}
        if of_this_run != expected or len(processes) != len(expected):
            ranks = sorted(process.rank for process in processes)
            yield culprit(f"{host.name}: its ranks are {ranks}, expected {sorted(expected)}")
    yield from shared_machines(plan, boot_ids)


def _strange_list(
    plan: RankPlan, table: PrintedTable, known: Mapping[int, ProcessIdentity]
) -> Iterator[Culprit]:
    """What is wrong with the ranks that the test lists."""
    if [device.rank for device in table.devices] != list(range(plan.world)):
        yield culprit(
            f"the test lists {counted(len(table.devices), 'rank')}, expected {plan.world}"
        )
    strange = [str(d.rank) for d in table.devices if not _is(d, known.get(d.rank))]
    if strange:
        yield culprit(f"the ranks {listed(strange)} that the test lists are not those of this run")
    if len({device.group for device in table.devices}) > 1:
        yield culprit("the test split its ranks into groups")


def _is(device: Device, process: ProcessIdentity | None) -> bool:
    """Whether a rank that the test lists is the one that reported who it is (a name without its domain)."""
    return process is not None and (device.pid, device.host) == (
        process.pid,
        process.hostname.partition(".")[0],
    )


def _strange_table(plan: RankPlan, table: PrintedTable) -> Iterator[Culprit]:
    """What is missing from the table as a whole."""
    sizes = sizes_in_table(plan.sizes_on("nccl"), table.reduced)
    if not table.rows:
        yield culprit("nothing was measured")
    elif [row.size for row in table.rows] != sizes:
        yield culprit(f"{counted(len(table.rows), 'size')} measured, expected {len(sizes)}")
    if table.validation < 1:
        yield culprit("the test did not check its results")
    if table.out_of_bounds is None:
        yield culprit("the test did not come to its end: there is no count of wrong values")
    elif table.out_of_bounds:
        yield culprit(f"the test counts {counted(table.out_of_bounds, 'value')} out of bounds")


def _strange_rows(plan: RankPlan, table: PrintedTable) -> Iterator[Culprit]:
    """Sizes whose result is wrong, or was not checked, or whose figures cannot be."""
    for row in table.rows:
        for half, where in ((row.out_of_place, "out-of-place"), (row.in_place, "in-place")):
            at = f"{row.size:,} bytes {where}"
            if half.wrong is None:
                yield culprit(f"{at}: the result was not checked")
            elif half.wrong:
                yield culprit(f"{at}: {half.wrong:g} wrong element{'s' * (half.wrong != 1)}")
            elif not _agrees(plan, row.size, half):
                figures = f"{half.time:g} us, {half.algbw:g} and {half.busbw:g} GB/s"
                yield culprit(f"{at}: {figures} are not those of {counted(plan.world, 'rank')}")


def _too_slow(plan: RankPlan, table: PrintedTable) -> Culprit | None:
    if not table.rows:
        return None
    reached = _busbw(plan, table.rows[-1].size, table.rows[-1].in_place)
    reason = shortfall(reached, plan.min_busbw, plan.unjudged)
    return culprit(reason) if reason else None


def _busbw(plan: RankPlan, size: int, half: TableHalf) -> float:
    """GB/s from the time: algbw * 2(n-1)/n with algbw = S/t (doc/PERFORMANCE.md)."""
    return size / half.time / 1e3 * 2 * (plan.world - 1) / plan.world if half.time > 0 else 0.0


def _agrees(plan: RankPlan, size: int, half: TableHalf) -> bool:
    """Whether a line's bandwidths are those that its size and time make with this many ranks."""
    if half.time <= 0:
        return False
    pairs = ((half.algbw, size / half.time / 1e3), (half.busbw, _busbw(plan, size, half)))
    return all(abs(printed - right) <= ROUNDING + SHARE * right for printed, right in pairs)


def _bandwidth(plan: RankPlan, row: TableRow) -> Bandwidth:
    return Bandwidth(
        bytes=row.size,
        seconds=row.in_place.time / 1e6,
        algbw=row.size / row.in_place.time / 1e3,
        busbw=_busbw(plan, row.size, row.in_place),
        out_of_place_busbw=_busbw(plan, row.size, row.out_of_place) or None,
    )


_VERSION = re.compile(r"# nccl-tests version (\S+)(?: nccl-headers=\d+ nccl-library=(\d+))?")
_VALIDATION = re.compile(r"# nThread .* validation: (\d+)")
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d+)(?:\s+Group\s+(\d+))?\s+Pid\s+(\d+) on\s+(\S+) device\s+\d+ \[[^\]]*\] (.*)"
)
_BOUNDS = re.compile(r"# Out of bounds values : (\d+) (OK|FAILED)")
_REDUCED = re.compile(r"# Reducing maxBytes to (\d+) due to memory")


def read_table(text: str) -> PrintedTable:
    """Parse what the test printed; never raises: what cannot be read is missing."""
    version = library = ""
    validation, out_of_bounds, reduced = 0, None, None
    devices: list[Device] = []
    rows: list[TableRow] = []
    for line in text.splitlines():
        if match := _VERSION.match(line):
            version, library = match[1], match[2] or ""
        elif match := _VALIDATION.match(line):
            validation = int(match[1])
        elif match := _DEVICE.match(line):
            devices.append(
                Device(int(match[1]), int(match[2] or 0), int(match[3]), match[4], match[5].strip())
            )
        elif match := _BOUNDS.match(line):
            out_of_bounds = int(match[1]) if match[2] == "OK" else max(1, int(match[1]))
        elif match := _REDUCED.match(line):
            reduced = int(match[1])
        elif not line.startswith("#") and (row := _row(line.split())):
            rows.append(row)
    return PrintedTable(version, library, validation, devices, rows, out_of_bounds, reduced)


def _row(words: list[str]) -> TableRow | None:
    """One line of the table: size, count, type, redop, root, then twice time, algbw, busbw, #wrong."""
    if len(words) != 13 or words[2:4] != ["float", "sum"]:
        return None
    try:
        return TableRow(int(words[0]), _half(words[5:9]), _half(words[9:13]))
    except ValueError:
        return None


def _half(words: list[str]) -> TableHalf:
    time, algbw, busbw = (float(word) for word in words[:3])
    return TableHalf(time, algbw, busbw, None if words[3] == "N/A" else float(words[3]))


def sizes_in_table(sizes: tuple[int, ...], reduced: int | None) -> list[int]:
    """List the sizes that the table must have: doubling, to the last or to what the GPUs' memory allows."""
    size, last, rows = sizes[0], min(sizes[-1], reduced or sizes[-1]), []
    while size <= last:
        # A whole number of float32 (setupArgs in src/common.cu).
        rows.append(size - size % 4)
        size *= 2
    return rows
