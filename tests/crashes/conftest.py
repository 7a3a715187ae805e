"""Lab hosts for crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.crashes.hosts import Site
from tests.lab.conftest import _no_leftovers as _no_leftovers
from tests.lab.conftest import clusters


@pytest.fixture(scope="module")
def new_site(
    _no_leftovers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[int], Site]]:
    """Make lab hosts that are gone when the module ends: ``new_site(2)``."""
    with clusters(tmp_path_factory.mktemp("crashes")) as make:

        def new(count: int) -> Site:
            cluster = make(count=count)
            return Site(cluster.lab, cluster.inventory_path.parent)

        yield new
