"""Arguments that name a file or a folder: an empty word names none, and is not the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class FilePath(click.Path):
    """The path of a file or a folder.

    Args:
        more: as ``click.Path`` takes it.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(path_type=Path, **more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; an empty word is mostly a variable of the shell that is not set."""
        if value == "":
            self.fail(
                "an empty word names no file; is a variable of the shell not set?", param, ctx
            )
        return super().convert(value, param, ctx)
