"""No dead ends: whatever is broken, a red verdict says what was seen, and its next step names what was broken.

``test_a_fault_that_nobody_thought_of`` walks through the faults of ``unknown_faults``, one after the other on
one lab, ``test_a_fault_of_the_lab`` through those of ``remedy lab break``, four hosts of one lab at a time.
With ``--full`` a few of the first kind, and one fault of each module of ``remedy.lab.faults``; with
REMEDY_FAULTS those that it names, or ``all``, which takes hours on two cores. With
REMEDY_FAULTS_PAGE=docs/faults.md each writes what it saw there.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from remedy.lab import faults
from tests import stub
from tests.lab.conftest import Cluster, clusters
from tests.lab.dead_ends import Walk, applied, keep, kept, known_row, named, unknown_row, walk
from tests.lab.site import Site
from tests.lab.unknown_faults import FAULTS, PRELOAD

pytestmark = pytest.mark.lab

# A rule that nothing repairs.
USUAL = ("device-ingress-drops",)
# A rule, a neighbour, an interpreter and a start-up file.
SOME = ("drops-by-count", "answers-no-arp", "python-hangs", "bashrc-reads")
PAGE = os.environ.get("REMEDY_FAULTS_PAGE", "")
# Only these, with spaces between them; "all"; or "missing", to go on after an interruption.
NAMED = tuple(os.environ.get("REMEDY_FAULTS", "").split())
BROKEN, SOUND = 4, 2
# Of the lab's own faults these are walked in the usual run.
FEW = ("route-unreachable",)


@pytest.fixture(scope="module")
def lab(
    _no_leftovers: None,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Site]:
    """Sound hosts, which are the first peers of the others, and the others; Docker on all."""
    with clusters(tmp_path_factory.mktemp("faults")) as make:
        broken = BROKEN if request.config.getoption("full") else len(FEW)
        made = Site(make(count=SOUND + broken, docker=True))
        made.edit_inventory({n: {"python": f"{stub.ON_HOSTS}/python"} for n in made.cluster.hosts})
        spec = "verify: {deadline: 25, sizes: [8]}\n"
        (made.folder / "remedy.yaml").write_text(spec, encoding="utf-8")
        make_right(made, *made.cluster.hosts[:SOUND])
        yield made


def make_right(site: Site, *hosts: str) -> None:
    """Give fresh hosts the stub, and everything that they need."""
    for name in hosts:
        stub.install(site.cluster.host(name))
    assert (
        site.remedy("apply", "--yes", "--no-verify", "--limit", ",".join(hosts), seconds=600).code
        == 0
    )


@pytest.fixture
def site(new_cluster: Callable[..., Cluster]) -> Site:
    """Three right hosts, whose ranks need no torch."""
    made = Site(new_cluster(count=3))
    made.run_on_stub()
    # How long a rank is waited for that does not come; what is measured by the others is not of interest.
    spec = "verify: {deadline: 25, sizes: [8]}\n"
    (made.folder / "remedy.yaml").write_text(spec, encoding="utf-8")
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


def chosen(name: str) -> bool:
    """Whether a fault is to be walked now."""
    if NAMED == ("missing",):
        return not any(f"(`{name}`)" in line for line in kept(Path(PAGE)))
    if NAMED == ("all",):
        return True
    return name in (NAMED or (*USUAL, *SOME, *FEW, *of_each_module()))


def of_each_module() -> tuple[str, ...]:
    """The first fault of each module of the lab's, of those that somebody has to say something of."""
    first: dict[str, str] = {}
    for fault in faults.catalogue():
        if not fault.harmless:
            first.setdefault(fault.inject.__module__, fault.name)
    return tuple(first.values())


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
        pytest.param(tuple(n for n in FAULTS if n not in USUAL), id="more", marks=pytest.mark.full),
    ],
)
def test_a_fault_that_nobody_thought_of(site: Site, tmp_path: Path, names: tuple[str, ...]) -> None:
    compiled = install_preload(site, tmp_path)
    hosts = tuple(site.cluster.hosts)
    walks: list[Walk] = []
    for name in names:
        if not chosen(name):
            continue
        if name == "preload-breaks-connect" and not compiled:
            continue
        fault = FAULTS[name]
        victim = hosts[1]
        fault.inject(site.cluster.host(victim))
        try:
            walks.append(walk(site, name, victim, hosts))
            if PAGE:
                keep(Path(PAGE), unknown_row(walks[-1], fault))
        finally:
            fault.mend(site.cluster.host(victim))
    assert walks or NAMED
    wrong = [(seen.fault, why) for seen in walks for why in flaws(seen)]
    assert wrong == []


def groups() -> list[object]:
    """The few of the usual run, then the others, as many at a time as there are hosts to break."""
    rest = [f.name for f in faults.catalogue() if f.name not in FEW and chosen(f.name)]
    return [
        pytest.param(FEW, id="usual"),
        *(
            pytest.param(tuple(group), id=group[0], marks=pytest.mark.full)
            for group in (rest[at : at + BROKEN] for at in range(0, len(rest), BROKEN))
        ),
    ]


@pytest.mark.parametrize("names", groups())
def test_a_fault_of_the_lab(lab: Site, names: tuple[str, ...]) -> None:
    hosts = lab.cluster.hosts
    sound, victims = hosts[:SOUND], dict(zip(hosts[SOUND:], filter(chosen, names), strict=False))
    if victims:
        # Before, not after: a walk over a host that is not right would say of the fault what is not of it.
        lab.cluster.reset(*victims)
        make_right(lab, *victims)
    for victim, name in victims.items():
        lab.cluster.fault(victim, name)
    walks = [known(lab, name, victim, sound) for victim, name in victims.items()]
    assert [(seen.fault, why) for seen in walks for why in known_flaws(seen)] == []


def known(site: Site, name: str, victim: str, sound: Sequence[str]) -> Walk:
    """Walk into a fault of the lab, and keep its row."""
    seen = applied(site, walk(site, name, victim, (*sound, victim)), victim)
    if PAGE:
        keep(Path(PAGE), known_row(seen))
    return seen


def known_flaws(seen: Walk) -> list[str]:
    """What is wrong with what an operator was told of a fault of the lab."""
    flaws = []
    says_something = seen.red or seen.check or not seen.apply[0].startswith("nothing")
    if not says_something and not faults.get(seen.fault).harmless:
        flaws.append("nobody says anything")
    if seen.red and not seen.culprits:
        flaws.append("nobody is named")
    if seen.red and seen.refuted:
        flaws.append(f"the hosts refute {seen.cause}, and it comes first")
    if seen.red and not seen.step:
        flaws.append("there is no next step")
    if seen.red and not named(seen):
        flaws.append(f"the next step does not say it: {seen.step}: {seen.answer[-2000:]}")
    return flaws


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
