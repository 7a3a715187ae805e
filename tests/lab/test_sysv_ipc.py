"""Stale System V segments on real hosts: only what nobody uses goes, looked at again at that moment."""

from __future__ import annotations

import json

import pytest

from remedy.plan import CommandAction
from remedy.runs.probe import probe
from remedy.runs.session import open_session
from tests.lab.conftest import Cluster
from tests.lab.runs import carry_out
from tests.lab.site import Site

pytestmark = pytest.mark.lab

SPEC = "sysv_ipc: {min_age_minutes: 0}\n"
APPLY = ("--yes", "--no-verify", "--json", "--limit", "gpu01")


def segments(site: Site, host: str) -> dict[int, int]:
    """Return the number of attached processes by segment, read on the host."""
    lines = site.cluster.run(host, "tail -n +2 /proc/sysvipc/shm").stdout.splitlines()
    return {int(words[1]): int(words[6]) for words in map(str.split, lines)}


@pytest.fixture
def site(cluster: Cluster) -> Site:
    found = Site(cluster)
    (found.folder / "remedy.yaml").write_text(SPEC)
    return found


def test_stale_segments_go_and_busy_ones_stay(site: Site) -> None:
    site.cluster.fault("gpu01", "stale-sysv-segment", "stale-sysv-segment", "busy-sysv-segment")
    site.cluster.run("gpu01", "ipcmk -M 4096; ipcmk -S 1; ipcmk -Q")  # root's
    before = segments(site, "gpu01")
    assert sorted(before.values()) == [0, 0, 0, 1]
    checked = site.remedy("check", "--json", "--limit", "gpu01").document["hosts"]["gpu01"]
    found = {f["title"]: f for f in checked["findings"] if f["remedy"] == "sysv_ipc"}
    drift = found["2 System V segments left by dead processes, 8.0 MiB"]
    assert drift["kind"] == "drift"
    assert [line.split(":")[0] for line in drift["evidence"]] == [
        f"shmid {number}" for number in list(before)[:2]
    ]
    assert found["1 System V segment of root left by dead processes, 4.0 KiB"]["kind"] == "report"
    assert len(found) == 2, "root has processes, so its semaphores and queues are not judged"

    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    (change,) = (c for c in applied.document["plan"]["changes"] if c["remedy"] == "sysv_ipc")
    assert change["reversible"] is False
    assert "lost" in change["disrupts"]
    after = segments(site, "gpu01")
    assert after == {number: n for number, n in before.items() if number not in list(before)[:2]}
    again = site.remedy("apply", *APPLY)
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert segments(site, "gpu01") == after, "what is gone cannot come back"


def test_a_segment_that_somebody_uses_by_now_survives(site: Site) -> None:
    site.cluster.fault("gpu01", "stale-sysv-segment", "stale-sysv-segment")
    taken, free = segments(site, "gpu01")
    session = open_session(site.inventory, spec=site.folder / "remedy.yaml", limit=("gpu01",))
    result = probe(session)
    plan = result.plan
    (change,) = (c for c in plan.for_host("gpu01") if c.remedy == "sysv_ipc")
    assert isinstance(change.action, CommandAction)
    assert change.action.before == f"shm {taken} {free}"
    plan = plan.model_copy(update={"changes": (change,)})
    # Between the plan and its application one is attached again, and a new one that is busy is made.
    attach = (
        "import ctypes, time; libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p;"
        f" libc.shmat({taken}, None, 0); print('on', flush=True); time.sleep(999)"
    )
    site.cluster.run("gpu01", f"setsid python3 -c {json.dumps(attach)} >/tmp/on 2>&1 &")
    site.cluster.run("gpu01", "until grep -q on /tmp/on; do sleep 0.05; done")
    site.cluster.fault("gpu01", "busy-sysv-segment")
    outcome = carry_out(session, plan, result)
    assert outcome.hosts["gpu01"].results[0].status.value == "done"
    left = segments(site, "gpu01")
    assert free not in left
    assert left[taken] == 1
    assert sorted(left.values()) == [1, 1]
