"""Rendering the templates that come with remedy: files for hosts, and pages for people.

What a file for a host is made of comes from the inventory and the spec. Text that was read from a host is data
and never gets there: it is neither a template nor, unless a strict parser made a value of it, an argument.
A page shows such text, and there every character of it shows and none is markup.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from remedy.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _files() -> Environment:
    # Most commands render nothing, and jinja2 takes a while to import.
    from jinja2 import Environment, PackageLoader, StrictUndefined

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


@cache
def _pages() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("remedy", "templates/pages"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """Return what a template puts into a page; all text but that of a template shows every character."""
    return visible(value) if type(value) is str else value


def render(template: str, **values: object) -> str:
    """Return the text of ``template`` (a file name in ``templates/``) with ``values`` filled in."""
    return _files().get_template(template).render(**values)


def render_page(template: str, **values: object) -> str:
    """Return the HTML of ``template`` (a file name in ``templates/pages/``) with ``values`` filled in."""
    return _pages().get_template(template).render(**values)
