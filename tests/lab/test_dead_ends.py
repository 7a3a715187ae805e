"""No dead ends: whatever is broken, a red verdict says what was seen, and its next step names what was broken.

``test_a_fault_that_nobody_thought_of`` walks through the faults of ``unknown_faults``, one after the other on
one lab. With REMEDY_FAULTS_PAGE=docs/faults.md it also writes what it saw there.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import stub
from tests.lab.conftest import Cluster
from tests.lab.dead_ends import Walk, page, walk
from tests.lab.site import Site
from tests.lab.unknown_faults import FAULTS, PRELOAD

pytestmark = pytest.mark.lab

# One of a rule that nothing repairs, one of an interpreter, one of a login.
USUAL = ("device-ingress-drops", "python-gone", "bashrc-ends")
PAGE = os.environ.get("REMEDY_FAULTS_PAGE", "")


@pytest.fixture
def site(new_cluster: Callable[..., Cluster]) -> Site:
    """Three right hosts, whose ranks need no torch."""
    made = Site(new_cluster(count=3))
    hosts = made.cluster.hosts
    made.edit_inventory({n: {"python": stub.install(made.cluster.host(n))} for n in hosts})
    # How long a rank is waited for that does not come; what is measured by the others is not of interest.
    spec = "verify: {deadline: 25, sizes: [8]}\n"
    (made.folder / "remedy.yaml").write_text(spec, encoding="utf-8")
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


def install_preload(site: Site, folder: Path) -> bool:
    """Give each host the library of PRELOAD; False where there is no compiler."""
    library = folder / "odd-connect.so"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    try:
        subprocess.run(command, input=PRELOAD, text=True, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    text = base64.b64encode(library.read_bytes()).decode("ascii")
    for name in site.cluster.hosts:
        site.cluster.host(name).must("base64 -d >/opt/odd-connect.so", stdin=text)
    return True


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(USUAL, id="usual"),
        pytest.param(tuple(FAULTS), id="all", marks=pytest.mark.full),
    ],
)
def test_a_fault_that_nobody_thought_of(site: Site, tmp_path: Path, names: tuple[str, ...]) -> None:
    compiled = install_preload(site, tmp_path)
    hosts = tuple(site.cluster.hosts)
    walks: list[Walk] = []
    for name in names:
        if name == "preload-breaks-connect" and not compiled:
            continue
        fault = FAULTS[name]
        victim = hosts[1]
        fault.inject(site.cluster.host(victim))
        try:
            walks.append(walk(site, name, victim, hosts))
        finally:
            fault.mend(site.cluster.host(victim))
    if PAGE:
        Path(PAGE).write_text(page(walks, FAULTS), encoding="utf-8")
    assert walks
    wrong = [(seen.fault, why) for seen in walks for why in flaws(seen)]
    assert wrong == []


def flaws(seen: Walk) -> list[str]:
    """What is wrong with what an operator was told of a fault."""
    flaws = []
    if not seen.red:
        return ["nothing was red"]
    if not seen.culprits:
        flaws.append("nobody is named")
    if seen.refuted:
        flaws.append(f"the hosts refute {seen.cause}, and it comes first")
    if not seen.step:
        flaws.append("there is no next step")
    if not re.search(FAULTS[seen.fault].thing, seen.answer):
        flaws.append(f"the next step does not name it: {seen.step}: {seen.answer[-3000:]}")
    return flaws
