"""Host lists as people write them: gpu[001-064]."""

from __future__ import annotations

from collections.abc import Iterable


def fold(names: Iterable[str]) -> str:
    """Return the names as one folded text, such as ``gpu[001-064],login1``."""
    # Where all hosts are as they should be there is nothing to fold.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))
