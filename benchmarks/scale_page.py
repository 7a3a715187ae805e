"""The table and the plot of ``benchmarks/scale.py``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Figures = Mapping[str, Mapping[str, Mapping[str, Any]]]

GOAL_MS, GOAL_MIB = 12.0, {1024: 250, 4096: 600}
# `remedy check` of hosts that need nothing, before: seconds of processor, MiB; on the machine of the goals.
BEFORE = {64: (1.4, 93), 256: (3.1, 173), 1024: (17.6, 696), 4096: (242.0, 6036)}
COLUMNS = (
    "command",
    "hosts",
    "processor",
    "a host",
    "ten million additions",
    "peak memory",
    "asked a host",
    "answered a host",
    "asked and answered in all",
    "commit",
)
SIZES = (64, 256, 1024, 4096, 10_000)
LEAST, MOST = SIZES[0], SIZES[-1]
WIDTH, HEIGHT, LEFT, TOP = 420, 260, 60, 40


def page(known: Figures) -> str:
    """Return the table, as Markdown."""
    days = {(f["day"], f["machine"]) for sizes in known.values() for f in sizes.values()}
    lines = [
        "# Growth of the controller",
        "",
        "Fleets that need nothing (those of `first` and `change` need their block of hosts), made by",
        "`python -m benchmarks.scale`, one round each; its docstring says what is measured. Endpoints",
        "share the cores of the controller, and other work went on beside them (up to 60 processes that",
        "wanted both): so there are the seconds of processor that ten million additions in Python took",
        "around each round, which say how quick the machine was; they were not measured before. A command's",
        "start, about one second, is in the figures a host. The goals:",
        f"{GOAL_MS:.0f} ms a host from 256 hosts on, 250 MiB at 1,024 and 600 MiB at 4,096.",
        "",
        *(f"- {day}: {machine}" for day, machine in sorted(days)),
        "",
        f"| {' | '.join(COLUMNS)} |",
        "| --- " + "| ---: " * (len(COLUMNS) - 1) + "|",
        *(
            f"| check, before | {size:,} | {cpu:.1f} s | {1000 * cpu / size:.1f} ms | | {mib:,} MiB | | | | |"
            for size, (cpu, mib) in BEFORE.items()
        ),
    ]
    for command, sizes in known.items():
        for size in sorted(map(int, sizes)):
            lines.append(_row(command, size, sizes[str(size)]))
    return "\n".join([*lines, *_first(known.get("first", {})), "", "![growth](scale.svg)", ""])


def _first(sizes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield how large the plan of a first run is."""
    for size in sorted(map(int, sizes)):
        yield ""
        file = f"{sizes[str(size)]['plan_mib']:.1f} MiB"
        yield f"The plan of a first run (`first`) of {size:,} hosts is a file of {file}."
    if sizes:
        yield "What it costs to show, approve and list such plans is measured by itself: [plans.md](plans.md)."


def _row(command: str, size: int, figures: Mapping[str, Any]) -> str:
    each = 1000 * figures["cpu"] / size
    wire = ["", "", ""]
    if figures["commands"]:
        asked, answered = figures["asked"], figures["answered"]
        wire = [f"{asked / size / 1024:.0f} KiB", f"{answered / size / 1024:.0f} KiB"]
        wire += [f"{(asked + answered) / 2**20:.0f} MiB"]
    words = [command, f"{size:,}", f"{figures['cpu']:.1f} s", f"{each:.1f} ms"]
    words += [
        f"{figures['additions']:.2f} s",
        f"{figures['rss_mib']:,} MiB",
        *wire,
        figures["commit"],
    ]
    return f"| {' | '.join(words)} |"


def plot(known: Figures) -> str:
    """Return two plots side by side, processor and memory of ``check``, as SVG; both axes are logarithmic."""
    check = {int(size): f for size, f in known.get("check", {}).items()}
    after = {size: 1000 * f["cpu"] / size for size, f in check.items()}
    cpu = [
        ("before", "#999999", {size: 1000 * c / size for size, (c, _) in BEFORE.items()}),
        ("after", "#0b6fa4", after),
        ("goal", "#c0392b", {256: GOAL_MS, 4096: GOAL_MS}),
    ]
    memory = [
        ("before", "#999999", {size: float(mib) for size, (_, mib) in BEFORE.items()}),
        ("after", "#0b6fa4", {size: float(f["rss_mib"]) for size, f in check.items()}),
        ("goal", "#c0392b", {size: float(mib) for size, mib in GOAL_MIB.items()}),
    ]
    parts = [*_chart(0, "ms of processor a host", cpu), *_chart(1, "MiB of memory in all", memory)]
    size = f'width="{2 * (WIDTH + LEFT)}" height="{HEIGHT + TOP + 50}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    )
    return "\n".join(
        [head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""]
    )


def _chart(
    place: int, title: str, lines: Iterable[tuple[str, str, Mapping[int, float]]]
) -> list[str]:
    lines = list(lines)
    values = [value for _, _, line in lines for value in line.values()]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    left = LEFT + place * (WIDTH + LEFT)

    def across(size: float) -> float:
        return left + math.log(size / LEAST) / math.log(MOST / LEAST) * (WIDTH - 60)

    def up(value: float) -> float:
        return TOP + HEIGHT * (1 - math.log(value / low) / math.log(high / low))

    parts = [f'<text x="{left}" y="20" font-weight="bold">{title}</text>']
    for size in SIZES:
        x = across(size)
        parts.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{TOP + HEIGHT}" stroke="#eeeeee"/>')
        parts.append(f'<text x="{x - 14}" y="{TOP + HEIGHT + 18}">{size:,}</text>')
    step = low
    while step <= high:
        y = up(step)
        parts.append(f'<line x1="{left}" y1="{y}" x2="{across(MOST)}" y2="{y}" stroke="#eeeeee"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{step:,g}</text>')
        step *= 10
    for number, (name, color, line) in enumerate(lines):
        points = " ".join(f"{across(size):.1f},{up(line[size]):.1f}" for size in sorted(line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        y = TOP + 14 + 16 * number
        parts.append(f'<text x="{left + 10}" y="{y}" fill="{color}">{name}</text>')
    return parts
