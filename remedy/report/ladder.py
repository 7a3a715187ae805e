"""A verdict as text for people: the ladder, the bandwidths, the culprits and what to run next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from remedy.text import fold

if TYPE_CHECKING:
    from remedy.diagnose.diagnosis import Explanation
    from remedy.verify.verdict import Culprit, Rung, SlowHost, Verdict

SIGNS = {True: ("ok ", "green"), False: ("RED", "bold red"), None: ("-  ", "dim")}
FACTS = 6
CULPRITS = 12
DEAD_LINKS = 8


def render_rung(rung: Rung) -> Text:
    """Return one rung in a line."""
    sign, style = SIGNS[rung.passed]
    line = Text(f"  {sign} ", style=style).append(f"{rung.name:<18}", style="default")
    if rung.seconds:
        line.append(f"{rung.seconds:6.1f} s  ", style="dim")
    return line.append(rung.message, style="default" if rung.passed is False else "dim")


def render_verdict(verdict: Verdict, explanation: Explanation | None) -> RenderableType:
    """Return what verification proved, in one line, with the figures, or with the culprits."""
    if verdict.passed:
        line = Text("proved       ", style="bold yellow" if verdict.absent else "bold green")
        line.append(verdict.reason, style="default")
        return Group(line, render_details(verdict))
    # The causes are read only where a proof failed.
    from remedy.report.diagnosis import render_explanation

    line = Text("NOT PROVED   ", style="bold red")
    line.append(verdict.reason, style="default")
    evidence = [] if verdict.dead_links else verdict.evidence[:12]
    return Group(
        line,
        *(Text(f"             {text}", style="dim") for text in evidence),
        render_details(verdict),
        *([render_explanation(explanation)] if explanation else []),
    )


def render_details(verdict: Verdict) -> RenderableType:
    """Return everything of a verdict below its first line."""
    parts: list[RenderableType] = []
    if verdict.bandwidth:
        parts.append(bandwidth_table(verdict))
    parts += [_slow(host) for host in verdict.slow[:CULPRITS]]
    if len(verdict.slow) > CULPRITS:
        parts.append(Text(f"  and {len(verdict.slow) - CULPRITS} more", style="dim"))
    for culprit in verdict.culprits[:CULPRITS]:
        parts += _culprit(culprit)
    if len(verdict.culprits) > CULPRITS:
        parts.append(Text(f"  and {len(verdict.culprits) - CULPRITS} more", style="dim"))
    if verdict.dead_links:
        parts.append(_dead_links(verdict))
    if verdict.dead_count > len(verdict.dead_links):
        total = f"  {verdict.dead_count:,} calls failed; {len(verdict.dead_links):,} are listed"
        parts.append(Text(total, style="dim"))
    return Group(*parts)


def bandwidth_table(verdict: Verdict) -> Table:
    """Return the measured sizes, as nccl-tests counts them, beside the capacity of the links."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("bytes", "time", "algbw GB/s", "busbw GB/s", "spread", "out-of-place"):
        table.add_column(title, justify="right")
    if verdict.limit_gbps:
        table.add_column(f"of {verdict.limit_gbps:g} GB/s", justify="right")
    for row in verdict.bandwidth:
        cells = [
            f"{row.bytes:,}",
            f"{row.seconds * 1e6:,.0f} us",
            f"{row.algbw:.3g}",
            f"{row.busbw:.3g}",
            f"{row.spread:.0%}",
            "" if row.out_of_place_busbw is None else f"{row.out_of_place_busbw:.3g}",
        ]
        if verdict.limit_gbps:
            cells.append(f"{row.busbw / verdict.limit_gbps:.0%}")
        table.add_row(*cells)
    return table


def _slow(host: SlowHost) -> Text:
    """Return a host that is much slower than the median in a line."""
    return Text(f"  {host.host}: ", style="bold yellow").append(
        f"exchanges {host.gbps:.3g} GB/s with the best of its partners, {host.share:.0%} of the median",
        style="default",
    )


def _culprit(culprit: Culprit) -> Iterator[Text]:
    yield Text(f"  {culprit.name}: ", style="bold red").append(culprit.why, style="default")
    for fact in dict.fromkeys(culprit.facts[:FACTS]):
        yield Text(f"      {fact}", style="dim")
    if culprit.next_step:
        yield Text(f"      {culprit.next_step}", style="cyan")


def _dead_links(verdict: Verdict) -> Table:
    """Return the dead links, those with the same target and outcome together."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for link in verdict.dead_links:
        sources = grouped.setdefault((link.target, link.outcome), [])
        if link.source not in sources:
            sources.append(link.source)
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("from", "to", "result"):
        table.add_column(title)
    for (target, outcome), sources in list(grouped.items())[:DEAD_LINKS]:
        table.add_row(fold(sources), target, outcome)
    if len(grouped) > DEAD_LINKS:
        table.add_row("", f"and {len(grouped) - DEAD_LINKS} more", "")
    return table
