"""The controller dies between the changes of a wave and its proof: who resumes the run proves it first."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from remedy.audit.agreement import Agreement
from remedy.runs import apply, wave
from remedy.runs.activity import NOT_PROVED
from remedy.runs.gate import Proposal
from remedy.runs.probe import probe
from remedy.runs.proof import Proof
from remedy.runs.session import open_session
from tests.lab.at_work import VERIFYING, processes, start
from tests.lab.bad_plans import BAD_PLANS, plan_of
from tests.lab.conftest import Cluster
from tests.lab.site import COMMAND, RemedyOutput, Site, wait_for
from tests.lab.unknown_faults import FAULTS
from tests.stub import ON_HOSTS as STUB_TORCH

pytestmark = pytest.mark.lab

STUB = "verify: {deadline: 60, isolate: false, sizes: [8]}\n"
FIRST, LAST = ("gpu01", "gpu02"), "gpu03"


@pytest.fixture
def site(new_cluster: Callable[..., Cluster]) -> Site:
    """Three hosts that need changes, and were never proved."""
    return Site(new_cluster(count=3))


def on_stub(site: Site) -> None:
    site.run_on_stub()
    (site.folder / "remedy.yaml").write_text(STUB, encoding="utf-8")


def records(site: Site) -> list[Mapping[str, Any]]:
    path = site.folder / ".remedy" / "journal.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def events(site: Site) -> list[str]:
    return [record["event"] for record in records(site)]


def cut_off(site: Site) -> str:
    """Kill an apply once the changes of its first wave are on record; return its run."""
    controller = start(site, "apply", "--yes", "--waves", "1,100%")
    try:
        wait_for(lambda: "changed" in events(site), 180)
    finally:
        controller.kill()
        controller.communicate()
    assert events(site) == ["planned", "began", "changed"], "it died before the proof had ended"
    (*_, changed) = records(site)
    assert set(changed["data"]["hosts"]) == set(FIRST), "nobody else could prove the first alone"
    wait_for(lambda: not processes(site.cluster, "[r]emedy-verify"), 120)
    assert site.names(LAST).static != f"{LAST}\n".encode()
    return str(changed["run"])


def resume(site: Site, run: str, *words: str) -> RemedyOutput:
    return site.remedy("apply", "--resume", run, "--yes", "--json", *words, seconds=400)


def waves(site: Site, run: str) -> list[tuple[int, str | None, list[str], bool | None]]:
    """Return the proofs of waves that a run has on record."""
    return [
        (data["wave"], data.get("of"), data["hosts"], data["passed"])
        for data in (r["data"] for r in records(site) if (r["run"], r["event"]) == (run, "wave"))
    ]


@pytest.mark.parametrize("ranks", ["stub", pytest.param("torch", marks=pytest.mark.full)])
def test_the_wave_is_proved_before_the_next_is_changed(site: Site, ranks: str) -> None:
    if ranks == "stub":
        on_stub(site)
    elif site.cluster.lab.record().python is None:
        pytest.skip("no torch for the hosts")
    run = cut_off(site)
    shown = site.show(run).stdout
    assert "gpu[01-02]: changed, and the proof of their wave did not end" in shown
    done = resume(site, run)
    assert done.code == 0, done.text
    assert "gpu[01-02]: changed by wave 1 of run" in done.stderr
    lines = done.document["waves"]
    assert lines[0] == f"wave 1 of run {run}: gpu[01-02] proved each other, without partners"
    assert lines[1].startswith("wave 1: gpu03 proved with gpu0")
    assert len(lines) == 2, lines
    second = done.document["run"]
    assert waves(site, second) == [
        (1, run, list(FIRST), True),
        (1, None, [LAST], True),
    ]
    order = [record["event"] for record in records(site) if record["run"] == second]
    assert order.index("wave") < order.index("began"), "nothing is changed before the proof"
    assert done.document["verdict"]["passed"] is True
    site.assert_right()
    assert f"gpu[01-02] of run {run}" in site.show(second).stdout
    assert site.remedy("audit verify").code == 0


def test_a_resumed_run_that_is_stopped_amid_its_first_proof_says_how_it_goes_on(site: Site) -> None:
    on_stub(site)
    run = cut_off(site)
    # Its ranks take long to start, so that there is time to stop.
    slow = "import time; time.sleep(20)\n"
    site.cluster.host(FIRST[0]).must(f"cat >>{STUB_TORCH}/torch/__init__.py", stdin=slow)
    process = start(site, "apply", "--resume", run, "--yes")
    wait_for(lambda: processes(site.cluster, VERIFYING).count("worker") >= 2, 120)
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=60)[1]
    assert (process.returncode, "Traceback" in text) == (143, False), text
    assert "nothing was changed on any host" in text
    assert f"gpu[01-02]: changed before; {NOT_PROVED}" in text
    go_on = f"remedy apply {site.inventory} --resume {run}"
    for command in (go_on, f"remedy rollback {run} {site.inventory}"):
        assert command in text
    assert site.names(LAST).static != f"{LAST}\n".encode()
    wait_for(lambda: not processes(site.cluster, VERIFYING), 120)
    site.cluster.host(FIRST[0]).must(f"sed -i '$d' {STUB_TORCH}/torch/__init__.py")
    done = site.run(str(COMMAND), *go_on.split()[1:], "--yes", "--json", seconds=400)
    assert done.code == 0, done.text
    assert done.document["waves"][0].startswith(f"wave 1 of run {run}: gpu[01-02] proved")
    site.assert_right()


def test_an_mtu_that_the_run_changed_before_it_was_cut_off_is_no_proof(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TCP takes the smaller size of two ends, so that the sum alone is right."""
    on_stub(site)
    assert site.remedy("apply", "--yes").code == 0
    (bad,) = (plan for plan in BAD_PLANS if plan.name == "mtu-of-one-host")
    hosts = {host.name: host.cluster_interface for host in site.cluster.lab.record().hosts}

    def dies(*_: object) -> Proof:
        raise KeyboardInterrupt

    settings = {"apply": {"waves": bad.waves}}
    session = open_session(site.inventory, settings=settings)
    plan = plan_of(session.inventory, hosts, bad)
    plan = plan.model_copy(update={"spec_digest": session.spec.digest})
    proposal = Proposal("apply", Agreement(plan), plan, probe(session))
    with monkeypatch.context() as patched:
        patched.setattr(wave, "prove", dies)
        with pytest.raises(KeyboardInterrupt):
            apply.apply(session, proposal, consent=lambda _: None, prove=True)
    run = session.activity.run
    assert events(site)[-3:] == ["planned", "began", "changed"]

    session = open_session(site.inventory, settings=settings)
    proposal = apply.propose(session, resume=run)
    assert proposal.earlier.hosts == ("gpu01",)
    outcome = apply.apply(session, proposal, consent=lambda _: None, prove=True)
    assert outcome.exit_code == 1
    lost = "packets of 9000 bytes from gpu01 do not arrive at"
    assert any(f"wave 1 of run {run}: NOT PROVED" in w and lost in w for w in outcome.waves), (
        outcome.waves
    )
    assert any("suspected: gpu01" in words for words in outcome.waves)
    sizes = {
        name: site.cluster.run(name, f"cat /sys/class/net/{interface}/mtu").stdout.strip()
        for name, interface in hosts.items()
    }
    assert sizes == {"gpu01": "9000", "gpu02": "1500", "gpu03": "1500"}, (
        "no further host was changed"
    )
    assert site.remedy("rollback", run, "--yes", "--limit", "gpu01").code == 0
    assert site.remedy("verify").code == 0


@pytest.mark.full
def test_a_proof_since_then_is_taken_as_long_as_it_holds(site: Site) -> None:
    on_stub(site)
    run = cut_off(site)
    verified = site.remedy("verify", "--limit", ",".join(FIRST), "--json")
    assert verified.code == 0, verified.text
    done = resume(site, run)
    assert done.code == 0, done.text
    words = f"proved by run {verified.document['run']} since, and as it was then"
    assert done.document["waves"][0] == f"gpu[01-02]: changed before by this plan; {words}"
    assert waves(site, done.document["run"]) == [(1, None, [LAST], True)]


@pytest.mark.full
def test_a_wave_whose_proof_fails_now_stops_the_run_and_is_taken_back_by_hand(site: Site) -> None:
    on_stub(site)
    before = site.all_names()
    run = cut_off(site)
    FAULTS["torch-broken"].inject(site.cluster.host(FIRST[0]))
    done = resume(site, run)
    assert done.code == 1, done.text
    assert site.names(LAST) == before[LAST]
    second = done.document["run"]
    assert waves(site, second) == [(1, run, list(FIRST), False)]
    text = "\n".join(done.document["waves"])
    assert f"wave 1 of run {run}: NOT PROVED with nobody" in text
    assert "suspected: gpu0" in text
    back = f"remedy rollback {run} {site.inventory} --limit 'gpu[01-02]'"
    assert f"wave 1 of run {run}: gpu[01-02]: not taken back; to take it back: {back}" in text
    shown = site.show(second).stdout
    assert "not back" in shown
    assert "suspected" in shown

    again = resume(site, run)
    assert again.code == 4
    assert f"the proof of wave 1 of run {run} failed" in again.stderr
    taken = site.remedy("rollback", run, "--yes", "--limit", "gpu[01-02]")
    assert taken.code == 0, taken.text
    assert {name: site.names(name).hosts for name in before} == {
        name: names.hosts for name, names in before.items()
    }
