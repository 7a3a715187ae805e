"""The inventory: which hosts there are, what they are called, how they are reached, and which are selected.

The file is a pyinfra inventory, read by pyinfra itself (``remedy.transport.reader``). What is added here is the
check that it makes sense as a cluster, and the notation of ``--limit``.
"""

from __future__ import annotations

from remedy.inventory.file import check_file, from_source
from remedy.inventory.hosts import Inventory, Node

__all__ = ["Inventory", "Node", "check_file", "from_source"]
