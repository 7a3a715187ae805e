"""The floor: plain pyinfra connects to every host and runs one fact, whose command is the probe's script.

Usage: python floor.py INVENTORY SCRIPT
"""

import pyinfra_cli  # noqa: F401  (first: it makes sockets cooperative)

# isort: split
import sys
from pathlib import Path

from pyinfra.api.config import Config
from pyinfra.api.connect import connect_all
from pyinfra.api.facts import FactBase, get_facts
from pyinfra.api.state import State
from pyinfra.context import ctx_state
from pyinfra_cli.inventory import make_inventory_from_files


class FloorAnswer(FactBase[str]):
    """The raw answer of a command."""

    def command(self, script: str) -> str:
        """Return the command: pyinfra has it run by ``sh -c``."""
        return script

    def process(self, output: list[str]) -> str:
        """Return the answer as it came."""
        return "\n".join(output)


def main(inventory_file: str, script_file: str) -> None:
    """Connect, run, and check that every host answered to the end."""
    state = State()
    with ctx_state.use(state):
        inventory = make_inventory_from_files(inventory_file)
    state.init(inventory, Config(PARALLEL=len(inventory)))
    connect_all(state)
    script = Path(script_file).read_text(encoding="utf-8")
    answers = get_facts(state, FloorAnswer, kwargs={"script": script})
    print(f"{len(answers)} hosts answered {sum(map(len, answers.values()))} characters")
    if len(answers) != len(inventory) or not all(answers.values()):
        sys.exit("a host did not answer")


if __name__ == "__main__":
    main(*sys.argv[1:])
