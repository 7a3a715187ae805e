"""Breaking a host in one way after the other: each is named, and nothing else is, and it is gone afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.lab.conftest import Cluster
from tests.lab.site import Site

APPLY = ("--yes", "--no-verify", "--json")


class Seen(NamedTuple):
    """What check says of a fault.

    Args:
        label: of the findings.
        words: of a title.
        undo: what takes the fault back: a text for the host's shell; $IF is the cluster interface, $OWN its
            address, $PEER that of the first peer.
        kind: of the findings.
    """

    label: str
    words: str
    undo: str
    kind: str = "blocked"


def found(site: Site, host: str, *, reports: bool = False) -> list[tuple[str, str, str]]:
    """Return label, title and kind of what `remedy check` finds on a host."""
    document = site.remedy("check", "--json").document
    return [
        (finding["label"], finding["title"], finding["kind"])
        for finding in document["hosts"][host]["findings"]
        if reports or finding["kind"] != "report"
    ]


def name_each(cluster: Cluster, faults: Mapping[str, Seen], victim: str = "gpu02") -> None:
    """Break a host in each way, twice, see that it is named and nothing else is, and take it back."""
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    host = cluster.host(victim)
    usual = found(site, victim, reports=True)
    assert not [each for each in usual if each[2] != "report"], usual
    places = (
        f"IF={host.record.cluster_interface} OWN={host.record.cluster_address} "
        f"PEER={host.peers[0].cluster_address}\n"
    )
    for name, seen in faults.items():
        cluster.fault(victim, name)
        cluster.fault(victim, name)
        said = [each for each in found(site, victim, reports=True) if each not in usual]
        assert {(label, kind) for label, _, kind in said} == {(seen.label, seen.kind)}, (name, said)
        assert any(seen.words in title for _, title, _ in said), (name, said)
        done = cluster.run(victim, places + seen.undo)
        assert done.returncode == 0, (name, done.stderr)
        assert found(site, victim, reports=True) == usual, name
