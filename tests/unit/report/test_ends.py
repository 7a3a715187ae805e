"""How runs end on many hosts at once: several kinds of failure together, few lines, and no host is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

import pytest
from ClusterShell.NodeSet import NodeSet

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.audit import witness
from remedy.audit.agreement import Agreement
from remedy.errors import ChangedKeyError, LockedError, RemedyError, UnreachableError
from remedy.plan import Change, Finding, FindingKind, Plan
from remedy.report.keys import render_keys
from remedy.report.outcome import render_outcome
from remedy.report.proposal import render_proposal
from remedy.runs.gate import Proposal
from remedy.runs.host import unread
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.sentences import by_sentence
from remedy.trust import HostKeys, KeyState
from remedy.trust.certificate import ShownKey
from tests.unit.build import record
from tests.unit.report.first import lines, names_of
from tests.unit.report.shapes import ACTION

WIDTH = 300
STATUS = re.compile(rf"(?:{'|'.join(status.value for status in HostStatus)})\s+(gpu\S+)$")
COMMAND = re.compile(r"remedy (apply|verify|check|trust|rollback|unlock) ")


def silent(name: str, n: int) -> HostOutcome:
    text = (
        f"{name} (10.0.{n // 250}.{n % 250}:22): no connection: no answer within {9 + n % 7 / 10} s"
    )
    step = f"Is the host up and its sshd reachable from here? ssh -p 22 10.0.{n // 250}.{n % 250}"
    return unread(UnreachableError(text, next_step=step))


def refused(name: str, n: int) -> HostOutcome:
    text = f"{name} (10.0.{n // 250}.{n % 250}:{22 + n % 3}): no connection: Connection refused"
    return unread(
        UnreachableError(text, next_step=f"ssh -p {22 + n % 3} 10.0.{n // 250}.{n % 250}")
    )


def other_key(name: str, n: int) -> HostOutcome:
    text = f"{name} (10.0.0.{n % 250}:22): the ssh host key has CHANGED (known_hosts:{n})"
    step = f"If it was replaced: remedy trust inventory.py --replace {name}"
    return unread(ChangedKeyError(text, next_step=step))


def locked(name: str, n: int) -> HostOutcome:
    run = f"20260131T{n % 240000:06}Z-{n:08x}"
    text = (
        f"{name}: this run changed nothing there: locked by another run: {run}, process {900 + n}"
    )
    return unread(LockedError(text, next_step=f"remedy unlock {run} inventory.py --limit {name}"))


def failed(name: str, n: int) -> HostOutcome:
    words = (
        f"{name}: process {1000 + n} holds it, {n % 9} times\nfirst of {n + 2} lines\n" + "x" * 400
    )
    change = f"0{1 + n % 4}-hosts_file"
    results = (
        ChangeResult(id=change, status=ChangeStatus.FAILED, detail=words),
        ChangeResult(id="05-limits", status=ChangeStatus.SKIPPED),
    )
    left = record(Finding, host=name, kind=FindingKind.DRIFT, title=f"/etc/hosts lacks {name}")
    return HostOutcome(HostStatus.FAILED, results, (left,))


def stale(_name: str, n: int) -> HostOutcome:
    detail = f"it is not as the plan says: {n + 3} MiB, expected 64 MiB"
    result = ChangeResult(id="03-dev_shm", status=ChangeStatus.STALE, detail=detail)
    return HostOutcome(HostStatus.FAILED, (result,))


def odd(name: str, n: int) -> HostOutcome:
    """Each of these hosts has a reason of its own."""
    text = f"{name}: exit status {n}"
    return HostOutcome(HostStatus.FAILED, error=RemedyError(text, next_step=f"journalctl {n}"))


def settled(_name: str, n: int) -> HostOutcome:
    message = f"waited {n} s for run 20260131T{n % 240000:06}Z-{n:08x}"
    return HostOutcome(HostStatus.CHANGED, message=message)


def good(_name: str, _n: int) -> HostOutcome:
    return HostOutcome(HostStatus.OK)


KINDS: dict[str, Callable[[str, int], HostOutcome]] = {
    kind.__name__: kind
    for kind in (silent, refused, other_key, locked, failed, stale, odd, settled, good)
}
MIXES = [
    *combinations(KINDS, 1),
    *combinations(KINDS, 2),
    *([*combinations(KINDS, 4)][::9]),
    tuple(KINDS),
]


def run(number: int, mix: Sequence[str], mode: str, *, mixed_up: bool) -> RunOutcome:
    """Give each kind its hosts: one after the other, or a block each."""
    names = names_of(number)
    hosts = {
        name: KINDS[mix[place % len(mix) if mixed_up else place * len(mix) // number]](name, place)
        for place, name in enumerate(names)
    }
    changes = tuple(
        record(Change, id=result.id, host=name, title=f"name it {name}", action=ACTION)
        for name, host in hosts.items()
        for result in host.results
    )
    return RunOutcome(
        mode, "r", "inventory.py", hosts, record(Plan, changes=changes), converged=False
    )


@pytest.mark.parametrize("mixed_up", [False, True])
@pytest.mark.parametrize(
    ("number", "mix"), [((500, 64, 8)[place % 3], mix) for place, mix in enumerate(MIXES)]
)
def test_whatever_hosts_end_with_it_is_a_page(
    number: int, mix: tuple[str, ...], *, mixed_up: bool
) -> None:
    outcome = run(number, mix, "rollback", mixed_up=mixed_up)
    text = lines(render_outcome(outcome), 3000)
    # A line or two of each kind, and of each its next step; hosts with reasons of their own are counted.
    assert len(text) <= 20 + 3 * len(mix), "\n".join(text)
    for line in text:
        assert len(line) <= WIDTH or COMMAND.search(line), line
    if not mixed_up:
        shown = NodeSet()
        for line in text:
            if match := STATUS.match(line):
                shown.update(match[1])
        assert set(shown) == set(outcome.hosts), "no host is lost"


@pytest.mark.parametrize(
    "kinds", [("silent",), ("silent", "refused"), ("silent", "refused", "other_key")]
)
@pytest.mark.parametrize("mixed_up", [False, True])
def test_500_hosts_that_cannot_be_reached_are_20_lines(
    kinds: tuple[str, ...], *, mixed_up: bool
) -> None:
    text = lines(render_outcome(run(500, kinds, "check", mixed_up=mixed_up)), 3000)
    assert len(text) <= 20, "\n".join(text)
    assert max(map(len, text)) <= WIDTH or all(
        COMMAND.search(line) for line in text if len(line) > WIDTH
    )


def test_reasons_of_single_hosts_do_not_hide_that_of_many() -> None:
    text = lines(
        render_outcome(run(500, ("odd", "silent", "other_key"), "check", mixed_up=False)), 3000
    )
    assert any(re.match(r"  gpu\S+ \(gpu\d+: .*no answer within", line) for line in text), text
    assert any("CHANGED" in line for line in text)


@pytest.mark.parametrize("mixed_up", [False, True])
@pytest.mark.parametrize("number", [8, 64, 500])
def test_a_rollback_that_leaves_hosts_alone_is_a_page(number: int, *, mixed_up: bool) -> None:
    names = names_of(number)
    ended = run(number, ("silent", "stale", "failed", "odd"), "rollback", mixed_up=mixed_up).hosts
    changes = tuple(
        record(
            Change,
            id="03-dev_shm",
            host=name,
            remedy="dev_shm",
            title=f"put back {name}",
            action=ACTION,
        )
        for name in names
    )
    plan = record(Plan, changes=changes)
    proposal = Proposal(
        "rollback", Agreement(plan, of="r"), plan, obstacles=ended, irreversible=changes
    )
    text = lines(render_proposal(proposal), 3000)
    assert len(text) <= 40, "\n".join(text)
    assert max(map(len, text)) <= WIDTH


@pytest.mark.parametrize("number", [8, 64, 500])
def test_what_cannot_be_taken_back_is_folded(number: int) -> None:
    changes = tuple(
        record(Change, id="01", host=name, title=f"end process {4000 + n} of {name}", action=ACTION)
        for n, name in enumerate(names_of(number))
    )
    notes = tuple(
        f"{name}: the journal does not have what this host remembers of it: record {n} of run"
        f" 20260131T{n:06}Z-{n:08x}"
        for n, name in enumerate(names_of(number))
    )
    plan = record(Plan)
    proposal = Proposal("rollback", Agreement(plan), plan, notes=notes, irreversible=changes)
    every = f"gpu[001-{number:03}]"
    assert proposal.final_words == (
        f"{every}: CANNOT be taken back: end process 4000 of gpu001  (as for gpu001)",
    )
    text = lines(render_proposal(proposal), 3000)
    assert len(text) <= 6, "\n".join(text)
    (note,) = (line for line in text if "the journal does not have" in line)
    assert note.startswith(f"{every}: the journal")


def key_blob(number: int) -> bytes:
    """An Ed25519 key as a server sends it (RFC 8709): two strings with their lengths before them."""
    parts = (b"ssh-ed25519", number.to_bytes(32, "big"))
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


@pytest.mark.parametrize("number", [8, 64, 500])
def test_keys_are_folded_but_for_the_fingerprints(number: int) -> None:
    """Whoever compares fingerprints needs each; all else is said once for the hosts of one state."""
    states = (KeyState.KNOWN, KeyState.NEW, KeyState.CHANGED, KeyState.SILENT)
    keys = [
        HostKeys(
            name,
            states[n % 4],
            detail=f"/etc/known_hosts:{n}" if n % 4 == 2 else "",
            keys=(ShownKey(key_blob(n)),) if n % 4 in (1, 2) else (),
            error=silent(name, n).error if n % 4 == 3 else None,
        )
        for n, name in enumerate(names_of(number))
    ]
    text = lines(render_keys(keys), 3000)
    fingerprints = [line for line in text if "SHA256" in line]
    assert len(fingerprints) == number // 2
    for line, key in zip(
        sorted(fingerprints), sorted(k.host for k in keys if k.fingerprints), strict=True
    ):
        assert line.split()[:2] == [key, "ssh-ed25519"]
    rest = [line for line in text if line not in fingerprints]
    assert len(rest) <= 8, "\n".join(rest)
    assert max(map(len, rest)) <= WIDTH


def test_what_hosts_remember_of_a_journal_is_folded() -> None:
    """As ``audit verify --hosts`` and ``audit accept`` show it: each host has records and runs of its own."""
    words = [
        (name, witness.judge([f"j {n} {n:064x} here 20260131T{n:06}Z-{n:08x}"], {0: "j"}, "", ()))
        for n, name in enumerate(names_of(500), 1)
    ]
    assert by_sentence(words) == [
        (
            "gpu[001-500]",
            "run 20260131T000001Z-00000001 left record 1 on it, and the journal ends with 0  (as for gpu001)",
        )
    ]
