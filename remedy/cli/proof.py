"""What can be said on the command line about the proof: the same for every command that ends with one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from remedy.verify.allreduce.engines import NAMES


def proof_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command is given them as ``proof``, by the names that the spec has for them."""

    @click.option(
        "--engine",
        type=click.Choice(NAMES),
        help="What runs the all-reduce; default: what the spec says, else torch.",
    )
    @click.option(
        "--min-busbw",
        metavar="GB/s|PERCENT%",
        help="The bus bandwidth that the largest size has to reach: GB/s, or as 60% a share of what the "
        "links can carry.",
    )
    @wraps(function)
    def command(*, engine: str | None, min_busbw: str | None, **options: Any) -> Any:
        return function(proof={"engine": engine, "min_busbw": min_busbw}, **options)

    return command
