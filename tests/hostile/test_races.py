"""A user races root wherever remedy writes, reads, removes or heals in a folder that is not root's alone."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remedy.apply import script
from remedy.plan import sha256
from tests.hostile import racer
from tests.hostile.racer import NAME, Ground, Play, racing
from tests.unit.host_bench import Bench

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root races another user: it needs root")

OLD, NEW = b"# the user's\nold\nend\n", b"# the user's\nnew\nend\n"
# The races of each case in the usual run, and with --full.
FEW, MANY = 5, 60
# How often a racer may try against a writer that defends nothing.
TRIES = 60


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Ground]]:
    """A fresh host each time; the user can go through the folders above it, as above a home."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="races-") as base:
        Path(base).chmod(0o755)
        made: list[Ground] = []

        def fresh() -> Ground:
            folder = Path(base, str(len(made)))
            folder.mkdir(mode=0o755)
            made.append(Ground(folder))
            monkeypatch.setattr(script, "ROOT", str(made[-1].state))
            monkeypatch.setattr(script, "LOG", str(made[-1].folder / "log"))
            return made[-1]

        yield fresh


# --- what root does, and by which way the user interferes -------------------------------------------------


def replace(ground: Ground) -> Bench:
    bench = Bench(ground.home)
    os.chown(bench.file(NAME, OLD, NEW), racer.USER, racer.USER)
    return bench


def splice(ground: Ground) -> Bench:
    bench = Bench(ground.home)
    os.chown(bench.spliced(NAME, OLD, NEW), racer.USER, racer.USER)
    return bench


def make(ground: Ground) -> Bench:
    bench = Bench(ground.home)
    bench.file(NAME, None, NEW)
    return bench


def remove(ground: Ground) -> Bench:
    bench = Bench(ground.home)
    os.chown(bench.file(NAME, OLD, None), racer.USER, racer.USER)
    return bench


def replace_below(ground: Ground) -> Bench:
    bench = Bench(ground.sub)
    os.chown(bench.file(NAME, OLD, NEW), racer.USER, racer.USER)
    return bench


def make_below(ground: Ground) -> Bench:
    bench = Bench(ground.sub)
    bench.file("new", None, NEW)
    return bench


def remove_below(ground: Ground) -> Bench:
    bench = Bench(ground.sub)
    os.chown(bench.file(NAME, OLD, None), racer.USER, racer.USER)
    return bench


def heal(ground: Ground) -> Bench:
    """A run before was killed while it wrote into a folder of the user's."""
    ground.theirs(ground.sub / ".remedy.left.1", b"half")
    ground.state.mkdir(mode=0o700)
    (ground.state / "temps").write_text(f"{ground.sub}/.remedy.left.1\n")
    whole = ground.state / "whole"
    whole.write_bytes(racer.SECRET[:3] + NEW)
    ground.theirs(ground.sub / NAME, racer.SECRET[:3])
    (ground.state / "inplace").write_text(
        f"{ground.sub / NAME}\n{whole}\n{sha256(whole.read_bytes())}\n"
    )
    return Bench(ground.folder)


def log(ground: Ground) -> Bench:
    return Bench(ground.folder)


Case = tuple[Callable[[Ground], Bench], Callable[[Ground], Play], bool]
"""What root does, what the user does, and whether at each event of the home (else all the time)."""
CASES: dict[str, Case] = {
    "replace, its temporary name": (replace, racer.temporary_name, True),
    "replace, its own name": (replace, racer.own_name, True),
    "splice, its temporary name": (splice, racer.temporary_name, True),
    "splice, its own name": (splice, racer.own_name, True),
    "make, its temporary name": (make, racer.temporary_name, True),
    "make, its own name": (make, racer.new_name, True),
    "remove, its own name": (remove, racer.own_name, True),
    "replace, its folder": (replace_below, racer.folder_name, False),
    "make, its folder": (make_below, racer.folder_name, False),
    "remove, its folder": (remove_below, racer.folder_name, False),
    "heal, its folder": (heal, racer.folder_name, False),
    "log, its own name": (log, racer.log_name, False),
}


def race(ground: Ground, case: Case, act: Callable[[Bench], str]) -> str:
    """Return what the user reached while ``act`` was at work, "" for nothing."""
    prepare, play, watching = case
    bench = prepare(ground)
    with racing(play(ground), ground.home if watching else None):
        report = act(bench)
    return ground.harm(report)


def applied(bench: Bench) -> str:
    report = bench.apply()
    assert report.finished or report.refused
    return str(report)


def taken_back(bench: Bench) -> str:
    return str(bench.undo())


def races(
    places: Callable[[], Ground], case: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    lost = []
    for _ in range(number):
        ground = places()
        if case.startswith("log"):
            monkeypatch.setattr(script, "LOG", str(ground.logs / "log"))
        lost.append(race(ground, CASES[case], applied))
    return list(filter(None, lost))


@pytest.mark.parametrize("case", CASES)
def test_a_racing_user_reaches_nothing_of_roots(
    places: Callable[[], Ground], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert races(places, case, FEW, monkeypatch) == []


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_a_racing_user_never_reaches_anything_of_roots(
    places: Callable[[], Ground], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert races(places, case, MANY, monkeypatch) == []


def rolled_back(places: Callable[[], Ground], case: str, number: int) -> list[str]:
    lost = []
    for _ in range(number):
        ground = places()
        prepare, play, watching = CASES[case]
        bench = prepare(ground)
        assert bench.apply().finished
        with racing(play(ground), ground.home if watching else None):
            taken_back(bench)
        lost.append(ground.harm())
    return list(filter(None, lost))


BACK = [case for case in CASES if not case.startswith(("heal", "log"))]


@pytest.mark.parametrize("case", BACK)
def test_nor_while_a_run_is_taken_back(places: Callable[[], Ground], case: str) -> None:
    assert rolled_back(places, case, 1) == []


@pytest.mark.full
@pytest.mark.parametrize("case", BACK)
def test_nor_ever_while_a_run_is_taken_back(places: Callable[[], Ground], case: str) -> None:
    assert rolled_back(places, case, MANY) == []


# --- the control: a writer who goes by names, as careful as names allow -------------------------------------

NAIVE = {
    "replace": """
        temp=${1%/*}/.remedy.1
        sha256sum <"$1" && cp -p "$1" "$2/pre" && set -C && true >"$temp" && set +C &&
            cp -p --preserve=all "$1" "$temp"; cat "$2/after" >"$temp" && mv -f "$temp" "$1"
    """,
    "make": """
        temp=${1%/*}/.remedy.1
        set -C; true >"$temp"; set +C; cat "$2/after" >"$temp"; cat "$temp" >"$1"; rm -f "$temp"
    """,
    "remove": 'sha256sum <"$1" && cp -p "$1" "$2/pre" && rm -f "$1"',
    "heal": 'rm -f "${1%/*}/.remedy.left.1"',
    "log": 'echo noted >>"$3"',
}
NAIVE["splice"] = NAIVE["replace"]


def naive(ground: Ground, what: str) -> Callable[[Bench], str]:
    def act(bench: Bench) -> str:
        path = str(getattr(bench.changes[0].action, "path", "")) if bench.changes else ""
        ground.state.mkdir(mode=0o700, exist_ok=True)
        (ground.state / "after").write_bytes(NEW)
        words = [path or str(ground.sub / NAME), str(ground.state), str(ground.logs / "log")]
        done = subprocess.run(
            ["sh", "-c", NAIVE[what], "naive", *words], capture_output=True, text=True, check=False
        )
        return done.stdout

    return act


@pytest.mark.parametrize("case", CASES)
def test_the_same_user_wins_against_a_writer_who_goes_by_names(
    places: Callable[[], Ground], case: str
) -> None:
    what = case.partition(",")[0]
    for _ in range(TRIES):
        ground = places()
        if race(ground, CASES[case], naive(ground, what)):
            return
    pytest.fail(f"{TRIES} races, none won: this racer shows nothing")


@pytest.mark.full
def test_a_user_who_stops_what_acts_for_the_user_costs_seconds_and_not_the_run(
    places: Callable[[], Ground],
) -> None:
    for _ in range(TRIES):
        ground = places()
        bench = replace(ground)
        with racing(racer.stops_all(ground), None):
            report = bench.apply()
        assert report.finished
        (result,) = report.results.values()
        if result.detail:
            break
    # On a busy machine the racer may come too late, now and then.
    assert "no answer: it was ended, or took more than 20 s" in result.detail
    # Stopped before it wrote, or, on a busy machine, before it answered: the file is whole in either case.
    assert (ground.home / NAME).read_bytes() in (OLD, NEW)
