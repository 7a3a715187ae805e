"""A verdict as text for people: the ladder, the bandwidths, the culprits and what to run next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from remedy.report.caveat import with_caveat
from remedy.report.culprits import culprit_lines, headline, link_lines, texts_shown
from remedy.sentences import WIDTH
from remedy.text import clipped, folded
from remedy.verify.verdict import NOT_TESTED

if TYPE_CHECKING:
    from remedy.diagnose.diagnosis import Explanation
    from remedy.verify.verdict import Bandwidth, Rung, SlowHost, Verdict

SIGNS = {True: ("ok ", "green"), False: ("RED", "bold red"), None: ("-  ", "dim")}
CULPRITS = 8
EVIDENCE = 4


def render_rung(rung: Rung) -> Text:
    """Return one rung in a line."""
    sign, style = SIGNS[rung.passed]
    line = Text(f"  {sign} ", style=style).append(f"{rung.name:<18}", style="default")
    if rung.seconds:
        line.append(f"{rung.seconds:6.1f} s  ", style="dim")
    return line.append(
        clipped(rung.message, WIDTH), style="default" if rung.passed is False else "dim"
    )


def render_verdict(verdict: Verdict, explanation: Explanation | None) -> RenderableType:
    """Return what verification proved, in one line, with the figures, or with the culprits."""
    if verdict.passed:
        line = Text("proved       ", style="bold yellow" if verdict.absent else "bold green")
        reason, unproved = with_caveat(verdict.reason.partition(NOT_TESTED)[0])
        line.append(clipped(reason, WIDTH), style="default")
        caveat = [Text(f"             {unproved}", style="yellow")] if unproved else []
        return Group(*_with_left_out(line, verdict), *caveat, render_details(verdict))
    # The causes are read only where a proof failed.
    from remedy.report.diagnosis import render_explanation

    line = Text("NOT PROVED   ", style="bold red")
    line.append(headline(verdict), style="default")
    evidence = [] if verdict.culprits else verdict.evidence
    more = f"and {len(evidence) - EVIDENCE} more (--json)" if len(evidence) > EVIDENCE else ""
    return Group(
        *_with_left_out(line, verdict),
        *(
            Text(f"             {clipped(text, WIDTH)}", style="dim")
            for text in evidence[:EVIDENCE]
        ),
        *([Text(f"             {more}", style="dim")] if more else []),
        render_details(verdict, explanation.command or "" if explanation else ""),
        *([render_explanation(explanation, texts_shown(verdict))] if explanation else []),
    )


def _with_left_out(line: Text, verdict: Verdict) -> list[Text]:
    """Return a line with the hosts that were left out, and why; where that is long, it stands above already."""
    words = "".join(verdict.reason.partition(NOT_TESTED)[1:])
    if not verdict.absent or len(line.plain) + len(words) <= WIDTH:
        return [line.append(words, style="default")]
    return [line, Text(f"             not tested, as said above: {folded(verdict.absent)}")]


def render_details(verdict: Verdict, command: str = "") -> RenderableType:
    """Return everything of a verdict below its first line.

    Args:
        verdict: the verdict.
        command: what is shown further below as the command to run next; "" for none.
    """
    parts: list[RenderableType] = []
    if verdict.bandwidth:
        parts.append(bandwidth_table(verdict))
    parts += [_slow(host) for host in verdict.slow[:CULPRITS]]
    if len(verdict.slow) > CULPRITS:
        parts.append(Text(f"  and {len(verdict.slow) - CULPRITS} more", style="dim"))
    parts += culprit_lines(verdict, command)
    parts += link_lines(verdict)
    if verdict.dead_count > len(verdict.dead_links):
        rest = f"; {len(verdict.dead_links):,} are listed" if verdict.dead_links else ""
        total = f"  {verdict.dead_count:,} calls failed{rest}"
        parts.append(Text(total, style="dim"))
    return Group(*parts)


def bandwidth_table(verdict: Verdict) -> Table:
    """Return the measured sizes, as nccl-tests counts them, beside the capacity of the links."""
    titles = ["bytes", "time", "algbw GB/s", "busbw GB/s", "spread", "out-of-place"]
    if verdict.limit_gbps:
        titles.append(f"of {verdict.limit_gbps:g} GB/s")
    rows = [_figures(row, verdict.limit_gbps) for row in verdict.bandwidth]
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title, *cells in zip(titles, *rows, strict=True):
        # Where the terminal is too narrow a line is broken; of a shorter column figures would be cut.
        table.add_column(title, justify="right", min_width=max(map(len, (title, *cells))))
    for cells in rows:
        table.add_row(*cells)
    return table


def _figures(row: Bandwidth, limit: float | None) -> list[str]:
    """Return the cells of a size."""
    cells = [
        f"{row.bytes:,}",
        f"{row.seconds * 1e6:,.0f} us",
        f"{row.algbw:.3g}",
        f"{row.busbw:.3g}",
        f"{row.spread:.0%}",
        "" if row.out_of_place_busbw is None else f"{row.out_of_place_busbw:.3g}",
    ]
    return [*cells, f"{row.busbw / limit:.0%}"] if limit else cells


def _slow(host: SlowHost) -> Text:
    """Return a host that is much slower than the median in a line."""
    return Text(f"  {host.host}: ", style="bold yellow").append(
        f"exchanges {host.gbps:.3g} GB/s with the best of its partners, {host.share:.0%} of the median",
        style="default",
    )
