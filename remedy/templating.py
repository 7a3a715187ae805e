"""Rendering the templates that come with remedy.

What is rendered comes from the inventory and the spec. Text that was read from a host is data and never
gets here: it is neither a template nor, unless a strict parser made a value of it, an argument.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # most commands render nothing

    # Most commands render nothing, and jinja2 takes a while to import.

    environment = Environment(
        loader=PackageLoader("remedy", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - configuration files, not HTML
    )
    environment.filters["pyliteral"] = repr  # a value as Python source, whatever it holds
    return environment


def render(template: str, **values: object) -> str:
    """Return the text of ``template`` (a file name in ``templates/``) with ``values`` filled in."""
    return _environment().get_template(template).render(**values)
