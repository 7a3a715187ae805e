"""A journal that was cut together with its head: the next command on the hosts says so, without being asked."""

from __future__ import annotations

import pytest

from remedy.audit.journal import FILE_NAME, read_records
from tests.hostile.cutting import cut
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab


def test_the_next_command_says_that_the_journal_was_cut(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    home = site.folder / ".remedy"
    count = sum(1 for _ in read_records(home / FILE_NAME))
    cut(home, 1)
    assert count > 2
    before = site.remedy("check")
    assert before.code != 0, before.text
    assert "the journal does not have what this host remembers of it" in before.text
    assert "and the journal ends with 0" in before.text
    again = site.remedy("apply", "--yes", "--no-verify")
    assert again.code != 0, again.text
    assert site.remedy("audit accept", "--yes").code == 0
    assert site.remedy("check").code == 0
    # What was cut off stays on the hosts.
    assert site.remedy("audit verify", "--hosts").code == 1
