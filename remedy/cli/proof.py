"""Options about the proof, the same for every command that ends with one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import click

from remedy.cli.one_of import OneOf
from remedy.spec import EngineName, LauncherName


def proof_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; a command receives them as ``proof``, by the names of the settings in the spec."""

    @click.option(
        "--engine",
        type=OneOf(get_args(EngineName)),
        help="What runs the all-reduce; default: the engine of the spec, else torch.",
    )
    @click.option(
        "--launcher",
        type=OneOf(get_args(LauncherName)),
        help="What starts the ranks: ssh, or slurm: srun, inside an allocation; default: the launcher of the "
        "spec, else ssh.",
    )
    @click.option(
        "--min-busbw",
        metavar="GB/s|PERCENT%",
        help="The bus bandwidth that the largest size has to reach: in GB/s, or such as 60% as a share of the "
        "capacity of the links.",
    )
    @click.option(
        "--divide",
        metavar="GROUPS|NUMBER",
        help="Sum in groups, side by side, and then across them: groups of the inventory, such as rack*, or at "
        "most so many neighbours each.",
    )
    @wraps(function)
    def command(
        *,
        engine: str | None,
        launcher: str | None,
        min_busbw: str | None,
        divide: str | None,
        **options: Any,
    ) -> Any:
        proof = {
            "engine": engine,
            "launcher": launcher,
            "min_busbw": min_busbw,
            "divide": divide,
        }
        return function(proof=proof, **options)

    return command
