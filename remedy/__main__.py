"""``python -m remedy``: the command ``remedy`` by the interpreter that has it."""

from __future__ import annotations

from remedy.cli.main import main

if __name__ == "__main__":
    main(prog_name="remedy")
