"""Leftovers in /dev/shm on real hosts: only what nobody holds goes, looked at again at that moment."""

from __future__ import annotations

import pytest

from remedy.runs.probe import probe
from remedy.runs.session import open_session
from tests.lab.conftest import Cluster
from tests.lab.runs import carry_out
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json", "--limit", "gpu01")
LIVE = {"nccl-Live01", "torch_4712_7654321_0"}
DEAD = {
    "nccl-Dead01",
    "torch_4711_1234567_0",
    "vader_segment.node.1000.5ee50001.1",
    "ucx_shm_posix_7f3a",
}
# Maps a leftover by another path, in a mount namespace of its own, as a container does that shares it.
ELSEWHERE = """\
mkdir -p /tmp/elsewhere
cat >/tmp/hold.py <<'END'
import mmap, time
file = open("/tmp/elsewhere/nccl-Dead01", "r+b")
memory = mmap.mmap(file.fileno(), 0)
file.close()
print("held", flush=True)
time.sleep(999)
END
setsid unshare --mount sh -c 'mount --bind /dev/shm /tmp/elsewhere && exec python3 /tmp/hold.py' \
    </dev/null >/tmp/held 2>&1 &
until grep -q held /tmp/held; do sleep 0.05; done
"""


def files(site: Site) -> set[str]:
    """Return the names in /dev/shm of the host."""
    return set(site.cluster.run("gpu01", "ls -A /dev/shm").stdout.split())


@pytest.fixture
def site(cluster: Cluster) -> Site:
    found = Site(cluster)
    (found.folder / "remedy.yaml").write_text("shm_leftovers: {min_age_minutes: 0}\n")
    return found


def test_leftovers_go_and_what_is_held_or_foreign_stays(site: Site) -> None:
    site.cluster.fault("gpu01", "stale-shm-files", "busy-shm-files")
    site.cluster.run("gpu01", "echo mine >/dev/shm/mine; mkdir /dev/shm/nccl-Folder")
    foreign = {"mine", "nccl-Folder"}
    checked = site.remedy("check", "--json", "--limit", "gpu01").document["hosts"]["gpu01"]
    (finding,) = (f for f in checked["findings"] if f["remedy"] == "shm_leftovers")
    assert finding["kind"] == "drift"
    assert finding["title"] == "4 files left in /dev/shm by dead jobs, 8.0 MiB"
    told = {line.partition(":")[0].rpartition("/")[2] for line in finding["evidence"]}
    assert told == DEAD
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert files(site) == LIVE | foreign
    again = site.remedy("apply", *APPLY)
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert files(site) == LIVE | foreign, "what is gone cannot come back"


def test_a_file_that_somebody_holds_by_now_survives(site: Site) -> None:
    site.cluster.fault("gpu01", "stale-shm-files")
    session = open_session(site.inventory, spec=site.folder / "remedy.yaml", limit=("gpu01",))
    result = probe(session)
    plan = result.plan
    changes = tuple(c for c in plan.changes if c.remedy == "shm_leftovers")
    assert len(changes) == 1
    site.cluster.run("gpu01", ELSEWHERE)
    site.cluster.host("gpu01").must("truncate -c -s +1 /dev/shm/ucx_shm_posix_7f3a")
    outcome = carry_out(session, plan.model_copy(update={"changes": changes}), result)
    assert outcome.hosts["gpu01"].results[0].status.value == "done"
    assert files(site) == {"nccl-Dead01", "ucx_shm_posix_7f3a"}
