"""A verdict as one HTML page: nothing is fetched, and everything that came from a host is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from remedy.text import counted, fold, visible

if TYPE_CHECKING:
    from remedy.verify.verdict import Verdict

# The outcomes of a link, the worst last; each with its colour in the map.
COLOURS = {
    "ok": "#d8efdc",
    "not tested": "#d9d9d9",
    "no name": "#e7d4f5",
    "no listener": "#fbe3b5",
    "foreign": "#f7c58f",
    "stalled": "#f2a36b",
    "mute": "#f2a36b",
    "rejected": "#e9756b",
    "refused": "#e0564e",
    "dropped": "#b3261e",
}
# A map of more hosts is drawn only for those with a dead link.
LARGEST = 160

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #1c1b1f; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.good { color: #1b6e2e; } .part { color: #8a5a00; } .bad { color: #b3261e; } .dim { color: #66646a; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem .2rem 0; text-align: left;
  vertical-align: top; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.map { overflow: auto; } .map svg { display: block; } code { background: #f2f1f4; padding: .1rem .3rem; }
.bar { display: inline-block; height: .7rem; background: #7fb08b; } .map rect:hover { stroke: #1c1b1f; }
.key span { display: inline-block; width: 1rem; height: 1rem; vertical-align: -.15rem;
  margin: 0 .3rem 0 1rem; border: 1px solid #0002; }
"""


def escape(text: str) -> str:
    """Return text from elsewhere for HTML: every character shows, and none is markup."""
    return html.escape(visible(text))


def page(verdict: Verdict, title: str) -> str:
    """Return the page.

    Args:
        title: name of the fleet.
    """
    return "".join(_page(verdict, title))


def _page(verdict: Verdict, title: str) -> Iterator[str]:
    word, style = ("proved", "good") if verdict.passed else ("not proved", "bad")
    if verdict.passed and verdict.absent:
        word, style = f"proved, but {counted(len(verdict.absent), 'host')} not tested", "part"
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}: {word}</title>'
    yield f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
    yield f'<h1>{escape(title)}: <span class="{style}">{word}</span></h1><p>{escape(verdict.reason)}</p>'
    yield f'<p class="dim">{escape(" · ".join(_ground(verdict)))}</p>'
    yield "<h2>The ladder</h2><table>"
    for rung in verdict.rungs:
        sign, look = {True: ("ok", "good"), False: ("red", "bad"), None: ("not run", "dim")}[
            rung.passed
        ]
        yield f'<tr><td>{escape(rung.name)}</td><td class="{look}">{sign}</td>'
        took = f"{rung.seconds:.1f} s" if rung.seconds else ""
        yield f'<td class="n">{took}</td><td>{escape(rung.message)}</td></tr>'
    yield "</table>"
    if verdict.culprits:
        yield "<h2>Culprits</h2>"
        for culprit in verdict.culprits:
            yield f'<p><b class="bad">{escape(culprit.name)}</b>: {escape(culprit.why)}<br>'
            for fact in dict.fromkeys(culprit.facts):
                yield f'<span class="dim">{escape(fact)}</span><br>'
            yield f"<code>{escape(culprit.next_step)}</code></p>" if culprit.next_step else "</p>"
    yield from _bandwidth(verdict)
    yield from _pace(verdict)
    yield from _map(verdict)
    yield from _tests(verdict)
    yield "<h2>Hosts</h2><table>"
    alike: dict[tuple[str, str], list[str]] = {}
    for entry in verdict.outcomes:
        alike.setdefault((entry.outcome, entry.reason), []).append(entry.host)
    for (outcome, reason), hosts in alike.items():
        look = {"pass": "good", "fail": "bad"}.get(outcome, "dim")
        yield f'<tr><td>{escape(fold(hosts))}</td><td class="{look}">{outcome}</td>'
        yield f"<td>{escape(reason)}</td></tr>"
    yield "</table></body></html>\n"


def _ground(verdict: Verdict) -> Iterator[str]:
    """Yield what was tested, as far as it is known."""
    if verdict.backend:
        yield f"{verdict.world_size} of {verdict.expected_world_size} ranks"
        yield f"{verdict.hosts} of {verdict.expected_hosts} hosts"
        yield verdict.backend
    else:
        yield f"{verdict.expected_hosts} hosts, no all-reduce"
    yield from (f"torch {version}" for version in verdict.torch)
    yield from (f"NCCL {version}" for version in verdict.nccl)
    if verdict.seconds:
        yield f"{verdict.seconds:.1f} s"


def _bandwidth(verdict: Verdict) -> Iterator[str]:
    if not verdict.bandwidth:
        return
    yield '<h2>All-reduce</h2><table><tr><th class="n">bytes</th><th class="n">time, us</th>'
    yield '<th class="n">algbw, GB/s</th><th class="n">busbw, GB/s</th><th class="n">spread</th>'
    yield '<th class="n">out-of-place, GB/s</th>'
    yield '<th class="n">of the links</th></tr>' if verdict.limit_gbps else "</tr>"
    for row in verdict.bandwidth:
        share = f"{row.busbw / verdict.limit_gbps:.0%}" if verdict.limit_gbps else ""
        copied = "" if row.out_of_place_busbw is None else f"{row.out_of_place_busbw:.3g}"
        cells = (
            f"{row.bytes:,}",
            f"{row.seconds * 1e6:,.0f}",
            f"{row.algbw:.3g}",
            f"{row.busbw:.3g}",
            f"{row.spread:.0%}",
            copied,
            share,
        )
        yield f"<tr>{''.join(f'<td class=n>{cell}</td>' for cell in cells)}</tr>"
    yield "</table>"


def _pace(verdict: Verdict) -> Iterator[str]:
    """Yield the bandwidth of every host, the slowest first, where one is slow."""
    if not verdict.slow:
        return
    slow = {pace.host: pace for pace in verdict.slow}
    yield "<h2>Slow hosts</h2><p>Bandwidth with the best of a few partners, each way.</p>"
    yield '<table><tr><th>host</th><th class="n">GB/s</th><th class="n">of the median</th><th></th></tr>'
    most = max(verdict.pace.values(), default=1.0)
    for host, rate in sorted(verdict.pace.items(), key=lambda item: item[1])[:LARGEST]:
        look = ' class="bad"' if host in slow else ""
        share = f"{slow[host].share:.0%}" if host in slow else ""
        bar = f'<span class="bar" style="width:{10 * rate / most:.2f}rem"></span>'
        yield f"<tr><td{look}>{escape(host)}</td><td class=n>{rate:.3g}</td><td class=n>{share}</td>"
        yield f"<td>{bar}</td></tr>"
    yield "</table>"


def _map(verdict: Verdict) -> Iterator[str]:
    """Yield a map of the links, one square each: a row opens connections, a column accepts them."""
    if verdict.dead_count > len(verdict.dead_links):
        # A square that is unknown would be drawn as a good one.
        yield f"<h2>Which hosts reach which</h2><p>{verdict.dead_count:,} links are dead: too many for a"
        yield " map. The culprits are the hosts that they have in common.</p>"
        return
    if not verdict.dead_links:
        return
    hosts = [entry.host for entry in verdict.outcomes]
    if len(hosts) > LARGEST:
        concerned = {name for dead in verdict.dead_links for name in (dead.source, dead.target)}
        hosts = [host for host in hosts if host in concerned][:LARGEST]
    squares = _squares(verdict, hosts)
    side = 20 if len(hosts) <= 32 else 16 if len(hosts) <= 64 else 8
    margin = 8 * max(map(len, hosts), default=0) + 8
    width = margin + side * len(hosts)
    yield "<h2>Which hosts reach which</h2><p>Rows open connections, columns accept them."
    yield '</p><p class="key">'
    for outcome in dict.fromkeys(outcome for outcome, _ in squares.values()):
        yield f'<span style="background:{COLOURS[outcome]}"></span>{outcome}'
    yield f'</p><div class="map"><svg width="{width}" height="{margin + side * len(hosts)}" '
    yield 'font-family="monospace" font-size="11">'
    for at, host in enumerate(hosts):
        middle = margin + side * at + side // 2 + 4
        yield f'<text x="{margin - 4}" y="{middle}" text-anchor="end">{escape(host)}</text>'
        yield f'<text transform="translate({middle},{margin - 4}) rotate(-90)">{escape(host)}</text>'
    places = {host: margin + side * at for at, host in enumerate(hosts)}
    for (source, target), (outcome, tip) in squares.items():
        yield f'<rect x="{places[target]}" y="{places[source]}" width="{side - 1}" '
        yield f'height="{side - 1}" fill="{COLOURS[outcome]}"><title>{escape(tip)}</title></rect>'
    yield "</svg></div>"


def _squares(verdict: Verdict, hosts: Sequence[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return for each link between hosts its outcome and what is said of it; what nobody tried is not good."""
    tried = not verdict.links_sampled and any(
        rung.name == "reachability" and rung.passed is not None for rung in verdict.rungs
    )
    absent = set(verdict.absent)
    order = list(COLOURS)
    worst: dict[tuple[str, str], str] = {}
    endings: dict[tuple[str, str], list[str]] = {}
    for dead in verdict.dead_links:
        link = (dead.source, dead.target)
        worst[link] = max(worst.get(link, "ok"), dead.outcome, key=order.index)
        port = dead.port or "any"
        endings.setdefault(link, []).append(f"port {port}: {dead.outcome} {dead.detail}")
    squares = {}
    for source, target in permutations(hosts, 2):
        usual = "ok" if tried and not absent & {source, target} else "not tested"
        outcome = worst.get((source, target), usual)
        tip = "; ".join((f"{source} -> {target}", *endings.get((source, target), [outcome])))
        squares[source, target] = (outcome, tip)
    return squares


def _tests(verdict: Verdict) -> Iterator[str]:
    if not verdict.tests:
        return
    yield '<h2>Tests of the isolation</h2><table><tr><th class="n">round</th><th>purpose</th><th></th>'
    yield "<th>hosts</th></tr>"
    for test in verdict.tests:
        look, word = ("good", "passed") if test.passed else ("bad", "failed")
        shown = fold(test.hosts)
        yield f'<tr><td class="n">{test.round}</td><td>{escape(test.purpose)}</td>'
        yield f'<td class="{look}">{word}</td><td>{escape(shown)}</td></tr>'
    yield "</table>"
