"""Chromium, driven in a process of its own: pages as they are drawn, and what a script finds on them.

Of its own, because in that of the tests pyinfra may have put cooperative sockets in the place of real ones.
"""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
    process = _browser()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([asdict(drawing) for drawing in drawings]) + "\n")
    process.stdin.flush()
    # What was not drawn in time ends the browser, and with it the wait for its answer.
    late = threading.Timer(DEADLINE, process.kill)
    late.start()
    try:
        answer = process.stdout.readline()
    finally:
        late.cancel()
    if not answer:
        _browser.cache_clear()
    assert answer, f"the browser ended: {process.wait()}"
    found: list[Any] = json.loads(answer)
    return found


@cache
def _browser() -> subprocess.Popen[str]:
    """Start the browser once for all that is drawn; it ends with this process."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdin is not None
    atexit.register(process.wait, 30)
    atexit.register(process.stdin.close)
    return process


def main() -> None:
    """Draw what each line of standard input lists; print what the scripts found, a line for each."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Its sandbox needs what a root user of a container has not; the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for line in sys.stdin:
            found = [_found(browser, Drawing(**fields)) for fields in json.loads(line)]
            print(json.dumps(found), flush=True)
        browser.close()


def _found(browser: Browser, drawing: Drawing) -> Any:
    """Draw a page in a window of its own; return what its script found."""
    sheet = browser.new_page(
        viewport={"width": drawing.width, "height": drawing.height},
        color_scheme=drawing.scheme,
    )
    sheet.set_content(drawing.page)
    if drawing.picture:
        sheet.screenshot(path=drawing.picture, full_page=drawing.whole)
    found = sheet.evaluate(drawing.script)
    sheet.close()
    return found


if __name__ == "__main__":
    main()
