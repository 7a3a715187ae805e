"""Chromium, driven in a process of its own: pages as they are drawn, and what a script finds on them.

Of its own, because in that of the tests pyinfra may have put cooperative sockets in the place of real ones.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LACKS = (
    "chromium is not installed (Debian: apt-get install chromium)"
    if CHROMIUM is None
    else ""
    if find_spec("playwright")
    else "playwright is not installed"
)
"""Why no page can be drawn here; "" where one can."""
ROOT = Path(__file__).parents[4]
DEADLINE = 300.0


@dataclass(frozen=True)
class Drawing:
    """A page in a window.

    Args:
        page: the HTML.
        width: of the window; ``height`` too, in pixels.
        script: a function in JavaScript, of which the value is returned.
        picture: where the screenshot of the window is to be written; "" for none.
        whole: whether the picture shows the page below the window as well.
    """

    page: str
    width: int
    script: str
    height: int = 900
    scheme: Literal["light", "dark"] = "light"
    picture: str = ""
    whole: bool = False


def draw(drawings: Sequence[Drawing]) -> list[Any]:
    """Return what the script of each drawing found."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps([asdict(drawing) for drawing in drawings]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Draw what standard input lists; print what the scripts found."""
    from playwright.sync_api import sync_playwright

    drawings = [Drawing(**fields) for fields in json.load(sys.stdin)]
    found = []
    with sync_playwright() as playwright:
        # Its sandbox needs what a root user of a container has not; the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for drawing in drawings:
            sheet = browser.new_page(
                viewport={"width": drawing.width, "height": drawing.height},
                color_scheme=drawing.scheme,
            )
            sheet.set_content(drawing.page)
            if drawing.picture:
                sheet.screenshot(path=drawing.picture, full_page=drawing.whole)
            found.append(sheet.evaluate(drawing.script))
            sheet.close()
        browser.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
