"""Waves of a fleet that was never proved: two hosts prove each other, and then those after them."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab


@pytest.mark.full
@pytest.mark.parametrize("ranks", ["stub", "torch"])
def test_each_wave_is_proved_by_those_before_it(cluster: Cluster, ranks: str) -> None:
    site = Site(cluster)
    if ranks == "stub":
        site.run_on_stub()
        (site.folder / "remedy.yaml").write_text("verify: {sizes: [8]}\n", encoding="utf-8")
    elif cluster.lab.record().python is None:
        pytest.skip("no torch for the hosts")
    applied = site.remedy("apply", "--waves", "1,100%", "--yes", seconds=300)
    assert applied.code == 0, applied.text
    assert (
        "changed in 2 waves, each of them proved; a wave whose proof fails is taken back"
        in applied.stdout
    )
    assert "wave 1: gpu[01-02] proved each other, without partners" in applied.stdout
    assert "wave 2: gpu[03-04] proved with gpu[01-02]" in applied.stdout
    assert "proved       4 ranks on 4 hosts" in applied.stdout


def test_a_run_whose_waves_are_not_proved_says_so(cluster: Cluster) -> None:
    site = Site(cluster)
    words = (
        "--waves",
        "1,100%",
        "--no-prove-waves",
        "--no-verify",
        "--yes",
        "--limit",
        "gpu01,gpu02",
    )
    applied = site.remedy("apply", *words)
    assert applied.code == 0, applied.text
    assert (
        "waves: changed without a proof of each (--no-prove-waves, or --no-verify)"
        in applied.stdout
    )
