"""Reading an inventory file by pyinfra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remedy.errors import InventoryError
from remedy.installed import points
from remedy.inventory import Inventory, check_file, from_source


def load_inventory(path: Path) -> Inventory:
    """Read an inventory file and check that it makes sense as a cluster.

    Raises:
        InventoryError: the file is missing, fails to run, or describes hosts that cannot be a cluster;
            the message names the file, and the line where one has the fault.
    """
    attributes = check_file(path)

    # Half a second, and in vain where the file itself is at fault.
    from pyinfra.api import connectors
    from pyinfra.api.state import State
    from pyinfra.context import ctx_state
    from pyinfra_cli import inventory as loader
    from pyinfra_cli.util import PYTHON_CODES, exec_file

    def run(filename: str, **options: Any) -> dict[str, Any]:
        # The inventory has run: it may ask a cloud, and a second answer may differ from what was checked.
        return attributes if filename == str(path) else exec_file(filename, **options)

    # It keeps what it compiled by name for the life of a process, also of a file that was edited since.
    PYTHON_CODES.clear()
    setattr(connectors, "entry_points", points)  # noqa: B010 - it reads them four times an inventory
    setattr(loader, "exec_file", run)  # noqa: B010 - its loader takes files, and no values
    try:
        with ctx_state.use(State()):  # its loader keeps its place in the current state
            source = loader.make_inventory_from_files(str(path))
    except Exception as error:
        # pyinfra wraps what a file of group_data raises, and cannot print that itself.
        cause = getattr(error, "exception", error)
        where = getattr(error, "filename", path)
        raise InventoryError(
            f"{where}: pyinfra cannot read it: {type(cause).__name__}: {cause}",
            next_step="Correct it; a name in an inventory that holds no hosts needs a leading underscore.",
        ) from cause
    return from_source(path, source, _keys())


def _keys() -> frozenset[str]:
    """Return the keys of a host's data that pyinfra reads: those of its ssh connector, and global arguments."""
    from pyinfra.api.arguments import all_global_arguments
    from pyinfra.connectors.ssh import ConnectorData

    arguments = (name for name, _ in all_global_arguments())
    return frozenset(ConnectorData.__annotations__) | {a for a in arguments if a.startswith("_")}
