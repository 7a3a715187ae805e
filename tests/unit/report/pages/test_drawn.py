"""Pages as Chromium draws them, on a phone, a tablet and a wide screen, light and dark; with screenshots.

The screenshots are left in the folder REMEDY_SCREENSHOTS, where that is set.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from remedy.report.pages.fleet import fleet_page
from remedy.report.pages.plan import plan_file_page, plan_page
from remedy.report.pages.run import run_page
from remedy.report.pages.story import story_page
from tests.unit.report.pages.chromium import LACKS, Drawing, draw
from tests.unit.report.pages.samples import (
    WHO,
    first_plan,
    good,
    many_faults,
    proof_page,
    red,
    run,
    year,
)

pytestmark = pytest.mark.skipif(bool(LACKS), reason=LACKS)
FLAWS = Path(__file__).with_name("flaws.js").read_text(encoding="utf-8")
WIDTHS = {"phone": 390, "tablet": 820, "screen": 1440}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def page_of(name: str) -> str:
    """Return one of the pages that are drawn."""
    if name == "plan":
        return plan_page(first_plan(64))
    if name == "plan-file":
        return plan_file_page(first_plan(64))
    if name == "run":
        return run_page(run(good(64), first_plan(64), "apply"), WHO)
    if name == "story":
        story = next(story for story in year() if story.mode == "apply")
        return story_page(
            story, first_plan(64), "", {}, {}, "/srv/inventory.py", "/srv/.remedy/journal"
        )
    if name == "fleet":
        return fleet_page(year(), "/srv/inventory.py", {})
    kind, _, hosts = name.partition("-")
    if kind == "faults":
        return run_page(many_faults(int(hosts)), WHO)
    return proof_page({"proved": good, "red": red}[kind](int(hosts)))


def flaws_of(name: str, folder: Path) -> dict[str, list[str]]:
    """Draw a page at each width in both schemes; return what is wrong with each."""
    folder.mkdir(exist_ok=True)
    text = page_of(name)
    names = [(width, scheme) for scheme in SCHEMES for width in WIDTHS]
    drawings = [
        Drawing(
            text,
            WIDTHS[width],
            FLAWS,
            scheme=scheme,
            picture=str(folder / f"{name}-{width}-{scheme}.png"),
            whole=True,
        )
        for width, scheme in names
    ]
    found = zip(names, draw(drawings), strict=True)
    return {" ".join(where): flaws for where, flaws in found if flaws}


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where they are left."""
    return Path(os.environ.get("REMEDY_SCREENSHOTS", tmp_path))


@pytest.mark.parametrize("name", ["red-64", pytest.param("faults-64", marks=pytest.mark.full)])
def test_a_red_proof_is_drawn_without_overlaps_cuts_or_pale_text(
    name: str, screenshots: Path
) -> None:
    assert flaws_of(name, screenshots) == {}
    assert len([*screenshots.glob(f"{name}-*.png")]) == len(WIDTHS) * len(SCHEMES)


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        "plan",
        "plan-file",
        "run",
        "story",
        "fleet",
        "proved-8",
        "proved-512",
        "red-512",
        "faults-8",
        "faults-512",
    ],
)
def test_every_page_is_drawn_without_overlaps_cuts_or_pale_text(
    name: str, screenshots: Path
) -> None:
    assert flaws_of(name, screenshots) == {}


def test_flaws_are_seen() -> None:
    """What finds nothing has to be shown to find something."""
    words = "".join(f"<p>line {n}</p>" for n in range(12))
    page = (
        f"<body style='background:#fff'>{words}<p style='color:#ccc'>pale</p>"
        "<div style='width:40px'>wwwwwwwwwwwwwwwwwwwwwww</div><div style='width:900px'>wide</div>"
        "<p style='margin-bottom:-1.6em'>below</p><p>above</p>"
        "<div style='overflow:hidden'>hidden</div>"
        "<svg width=90 height=20><text x=60 y=15>outside of it</text></svg></body>"
    )
    (found,) = draw([Drawing(page, 390, FLAWS)])
    text = " ".join(found)
    flaws = (
        "contrast",
        "cut: DIV",
        "overlap: below / above",
        "the page is",
        "hides text",
        "out of",
    )
    for flaw in flaws:
        assert flaw in text, text


SCROLLED = """() => {
    const map = document.querySelector(".map");
    map.scrollTo(300, 300);
    const box = map.getBoundingClientRect();
    const row = map.querySelector("tbody tr:nth-child(40) th").getBoundingClientRect();
    const column = map.querySelector("thead th:nth-child(40)").getBoundingClientRect();
    return [map.scrollLeft, map.scrollTop, row.left - box.left, column.top - box.top];
}"""


def test_the_names_of_a_map_stay_in_sight_while_it_is_scrolled() -> None:
    (places,) = draw([Drawing(page_of("red-64"), 820, SCROLLED, height=700)])
    assert min(places[:2]) > 100, "nothing was scrolled"
    assert max(map(abs, places[2:])) < 3


PLOTTED = """() => {
    const pictures = [...document.querySelectorAll(".plot, .bar")];
    const letters = [...document.querySelectorAll(".plot text")];
    return [
        Math.max(...pictures.map((picture) => picture.getBoundingClientRect().right)),
        Math.min(...letters.map((text) => text.getBoundingClientRect().height)),
        pictures.length,
    ];
}"""


@pytest.mark.parametrize("width", WIDTHS.values())
def test_plot_and_bars_are_whole_in_the_window_with_letters_that_can_be_read(width: int) -> None:
    ((right, letters, count),) = draw([Drawing(page_of("proved-8"), width, PLOTTED)])
    assert right <= width
    assert letters > 11
    assert count == 9


SIDEWAYS = """
[...document.querySelectorAll(".wide")]
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => box.innerText.slice(0, 60))
"""


def test_no_table_of_a_fleets_months_scrolls_sideways_on_a_phone() -> None:
    """What a cell means stands before it there, in place of the heading."""
    ((sideways),) = draw([Drawing(page_of("fleet"), WIDTHS["phone"], SIDEWAYS)])
    assert sideways == []
