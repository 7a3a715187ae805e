"""What a wave is called that is not proved: what cannot be taken back, what no change broke, who proves it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from remedy.apply.start import origin
from remedy.audit.agreement import Agreement
from remedy.audit.story import Story
from remedy.errors import RefusedError
from remedy.plan import Change, CommandAction, Plan
from remedy.runs import apply
from remedy.runs.gate import Proposal
from remedy.runs.outcome import HostStatus, RunOutcome
from remedy.runs.probe import probe
from remedy.runs.session import open_session
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

HOLDS = "test -e {} && echo there || echo gone"
WALL = "table inet wall { chain c { type filter hook input priority -9; tcp dport > 1024 drop; }; }"


def note(path: str = "/root/note", more: str = "", *, undo: str | None = None) -> CommandAction:
    """A file that tells nobody anything, and whatever else is done beside it."""
    back = f"rm {path}" if undo is None else undo
    do = f"touch {path}{more}"
    return CommandAction(observe=HOLDS.format(path), before="gone", after="there", do=do, undo=back)


FAILS = CommandAction(observe="echo never", before="never", after="done", do="false", undo="true")


@pytest.fixture(scope="module")
def site(module_cluster: Cluster) -> Site:
    """Hosts that are right and were never proved."""
    site = Site(module_cluster)
    site.run_on_stub()
    spec = "verify: {deadline: 60, isolate: false, sizes: [8]}\n"
    (site.folder / "remedy.yaml").write_text(spec, encoding="utf-8")
    applied = site.remedy("apply", "--yes", "--no-verify")
    assert applied.code == 0, applied.text
    return site


@pytest.fixture
def proved(site: Site) -> Site:
    """Hosts whose last proof holds."""
    assert site.remedy("verify").code == 0
    return site


def carry_out(
    site: Site, waves: str, actions: Mapping[str, Sequence[CommandAction]]
) -> tuple[RunOutcome, Story]:
    """Carry a plan out in waves; return how the run ended, and its story."""
    session = open_session(site.inventory, settings={"apply": {"waves": waves}})
    who = origin()
    plan = Plan(
        tool_version="test",
        created=who.created,
        author=who.author,
        inventory=session.inventory.path.name,
        inventory_digest=session.inventory.digest,
        spec_digest=session.spec.digest,
        changes=tuple(
            Change(
                id=f"{number:02}-tuning",
                host=host,
                remedy="tuning",
                title=f"step {number}",
                reason="it looked right",
                label="firewall-ports",
                reversible=action.undo != "",
                action=action,
            )
            for host, steps in actions.items()
            for number, action in enumerate(steps, 1)
        ),
    )
    proposal = Proposal("apply", Agreement(plan), plan, probe(session))
    outcome = apply.apply(session, proposal, consent=lambda _: None, prove=True)
    return outcome, session.story(outcome.run)


def holders(site: Site, path: str) -> list[str]:
    return [h for h in site.cluster.hosts if site.cluster.run(h, f"test -e {path}").returncode == 0]


@pytest.mark.full
def test_a_host_that_lets_nobody_in_any_more_is_not_proved(proved: Site) -> None:
    first = proved.cluster.hosts[0]
    stops = note("/root/closed", "; systemctl stop ssh")
    try:
        outcome, _ = carry_out(proved, "100%", {first: [stops]})
    finally:
        proved.cluster.run(first, "systemctl start ssh; rm -f /root/closed")
    assert outcome.exit_code == 5
    assert outcome.hosts[first].status is HostStatus.UNREACHABLE
    assert outcome.verdict is not None
    assert outcome.verdict.hosts == len(proved.cluster.hosts) - 1, (
        "it is none of those that are proved"
    )


@pytest.mark.full
def test_what_nothing_takes_back_is_not_called_as_before(proved: Site) -> None:
    first, *others = proved.cluster.hosts
    wall = note("/root/wall", f"; nft '{WALL}'", undo="rm /root/wall; nft delete table inet wall")
    steps = [note("/root/kept", undo=""), wall]
    outcome, story = carry_out(proved, "1,100%", dict.fromkeys(proved.cluster.hosts, steps))
    assert outcome.exit_code == 1
    assert (holders(proved, "/root/kept"), holders(proved, "/root/wall")) == ([first], [])
    assert story.red["as_before"] == []
    assert "nothing takes 01-tuning (step 1) back" in story.red["not_as_before"][first]
    assert not any("byte for byte" in line for line in outcome.waves)
    assert outcome.verdict is not None
    assert not outcome.verdict.passed
    assert "nftables (inet wall c)" in outcome.verdict.reason, "the reason is what was seen there"
    assert story.red["suspects"][0]["reason"].startswith("it is about what the host lacks now")
    assert all(outcome.hosts[name].status is HostStatus.NOT_REACHED for name in others)
    with pytest.raises(RefusedError, match="its wave 1 failed"):
        apply.propose(open_session(proved.inventory), resume=outcome.run)


def test_a_host_that_failed_in_this_run_proves_no_other(proved: Site) -> None:
    first, second, broken, last = proved.cluster.hosts
    steps = {
        first: [note()],
        broken: [note(more=f"; nft '{WALL}'", undo="rm /root/note; nft delete table inet wall"), FAILS],
        second: [note()],
    }  # fmt: skip
    try:
        outcome, story = carry_out(proved, "2,100%", steps)
    finally:
        proved.cluster.run(broken, "nft delete table inet wall")
        for name in (first, second, broken):
            proved.cluster.run(name, "rm -f /root/note")
    assert outcome.hosts[broken].status is HostStatus.FAILED
    assert [wave["passed"] for wave in story.waves] == [True, True]
    assert story.waves[1]["hosts"] == [second]
    assert set(story.waves[1]["partners"]) <= {first, last}


def test_a_wave_that_nobody_can_prove_is_taken_back(site: Site) -> None:
    # No proof holds any more.
    for name in site.cluster.hosts:
        site.cluster.run(name, "echo '# a note' >>/etc/environment")
    first, second, *others = site.cluster.hosts
    steps = {name: [note("/root/unproved")] for name in site.cluster.hosts}
    outcome, story = carry_out(site, "1,100%", {**steps, second: [FAILS]})
    assert outcome.exit_code == 1
    assert [(wave["hosts"], wave["passed"]) for wave in story.waves] == [([first], False)]
    assert f"no host is there to prove {first} with" in story.red["reason"]
    assert "01-tuning failed" in story.red["reason"]
    assert story.red["as_before"] == [first, second]
    assert holders(site, "/root/unproved") == []
    assert all(outcome.hosts[name].status is HostStatus.NOT_REACHED for name in others)


@contextmanager
def cut(site: Site, one: str, other: str) -> Iterator[None]:
    """Have the switch between two hosts lose what one sends to the other."""
    lab, addresses = site.cluster.lab, site.addresses()
    run: Callable[[str], object] = lambda text: subprocess.run(  # noqa: E731
        ["ip", "netns", "exec", lab.paths.switch, "nft", text], check=True
    )
    rule = f"ip saddr {addresses[one]} ip daddr {addresses[other]} drop"
    run(f"table bridge cut {{ chain c {{ type filter hook forward priority 0; {rule}; }}; }}")
    try:
        yield
    finally:
        run("delete table bridge cut")


@pytest.mark.full
def test_what_fails_without_the_changes_as_well_is_blamed_on_none(proved: Site) -> None:
    hosts = proved.cluster.hosts
    with cut(proved, hosts[0], hosts[2]):
        outcome, story = carry_out(proved, "1,100%", {name: [note("/root/good")] for name in hosts})
    assert outcome.exit_code == 1
    assert story.red["as_before"] == [hosts[0]]
    assert (story.red["proved_again"], story.red["suspects"]) == (False, [])
    assert any("no change is suspected" in line for line in outcome.waves)
    assert "no change: the proof fails without them as well" in proved.show(outcome.run).stdout
    assert holders(proved, "/root/good") == []
