"""Hosts that only gateways reach: read, repaired and proved through them, and told where that fails."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import ClusterShell
import pytest

from remedy.lab.rootfs import GUARDED_PASSWORD
from remedy.runs.outcome import HostStatus
from remedy.runs.probe import probe
from tests.lab.conftest import Cluster, clusters
from tests.lab.gateway_site import PACKAGES, GatewaySite
from tests.lab.runs import LOCKOUT, carry_out, new_file, open_hosts, pending, plan_of
from tests.lab.site import Site, wait_for

pytestmark = pytest.mark.lab

SHORT = ", name: 3, connect: 3, key_exchange: 4, login: 4, channel: 4, command: 4, silence: 6"


def test_hosts_behind_a_gateway_are_read_and_repaired(cluster: Cluster) -> None:
    through = GatewaySite(Site(cluster), ("gpu01",))
    through.install()
    site = through.site
    checked = site.remedy("check", "--json")
    assert {host["error"] for host in checked.document["hosts"].values()} == {None}, checked.text
    applied = site.remedy("apply", "--yes", "--no-verify")
    assert applied.code == 0, applied.text
    site.assert_right()
    again = site.remedy("check", "--exit-code")
    assert again.code == 0, again.text


@pytest.fixture(scope="module")
def two(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewaySite]:
    """Two hosts behind two gateways, with ranks that cost little."""
    with clusters(tmp_path_factory.mktemp("gateways")) as make:
        through = GatewaySite(Site(make(count=4)), ("gpu01", "gpu02"))
        through.install()
        through.site.run_on_stub()
        yield through


@pytest.fixture
def site(two: GatewaySite) -> Iterator[Site]:
    """The same, with its settings and its gateways as they were."""
    two.settings("verify: {sizes: [8]}\n", SHORT)
    yield two.site
    for name in two.gateways:
        two.cluster.host(name).must(
            f"systemctl unmask ssh; systemctl start ssh; "
            f"[ ! -e {PACKAGES}/gone ] || mv {PACKAGES}/gone {PACKAGES}/ClusterShell; "
            f"sed -i 's/^__version__ = .*/__version__ = \"{ClusterShell.__version__}\"/' "
            f"{PACKAGES}/ClusterShell/__init__.py"
        )


def errors(site: Site) -> dict[str, str]:
    """Return why hosts cannot be read."""
    hosts = site.remedy("check", "--json").document["hosts"]
    return {name: host["error"] for name, host in hosts.items() if host["error"]}


@pytest.mark.full
def test_an_apply_is_proved_with_ranks_behind_gateways(site: Site) -> None:
    applied = site.remedy("apply", "--yes", "--json")
    assert applied.code == 0, applied.text
    verdict = applied.document["verdict"]
    assert (verdict["passed"], verdict["world_size"]) == (True, 4)
    site.assert_right()
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text


@pytest.mark.full
def test_hosts_of_a_dead_gateway_move_to_the_other_and_without_one_are_told(site: Site) -> None:
    cluster = site.cluster
    cluster.host("gpu01").must("systemctl mask --now ssh; systemctl kill ssh || true")
    checked = site.remedy("check", "--json")
    assert {n for n, host in checked.document["hosts"].items() if host["error"]} == {"gpu01"}
    (warning,) = [w for w in checked.document["warnings"] if " failed as a gateway" in w]
    assert warning.startswith("gpu01: failed as a gateway, its hosts went through gpu02: ")
    assert "Connection refused" in warning
    assert site.remedy("check").text.count("failed as a gateway") == 1
    cluster.host("gpu02").must("systemctl mask --now ssh; systemctl kill ssh || true")
    said = errors(site)
    assert set(said) == set(cluster.hosts)
    assert "unreachable through gpu[01-02]: " in said["gpu03"]
    assert "Connection refused" in said["gpu03"]


@pytest.mark.full
def test_a_gateway_that_dies_at_work_is_told_and_what_was_guarded_is_taken_back(
    site: Site, two: GatewaySite
) -> None:
    """The confirmation has no way to the host: its own timer takes the change back."""
    path = "/etc/remedy-test-gateway"
    action, blobs = new_file(path)
    session = open_hosts(site.inventory, 15, "gpu03")
    result = probe(session)
    make = session.carrier._confirm

    def cut(*arguments: object) -> object:
        for name in two.gateways:
            two.cluster.host(name).must("systemctl mask --now ssh; pkill sshd || true")
        return make(*arguments)  # type: ignore[arg-type]

    session.carrier._confirm = cut  # type: ignore[method-assign,assignment]
    outcome = carry_out(session, plan_of("gpu03", action, blobs), result)
    session.close()
    error = outcome.hosts["gpu03"].error
    assert error is not None
    assert outcome.hosts["gpu03"].status is HostStatus.UNREACHABLE
    assert "unreachable through gpu[01-02]" in error.message
    wait_for(lambda: two.cluster.run("gpu03", f"test -e {path}").returncode != 0, 60)
    assert pending(two.cluster, "gpu03") == ""


@pytest.mark.full
def test_a_gateway_that_dies_between_two_scripts_is_named_and_the_other_takes_over(
    site: Site,
) -> None:
    session = open_hosts(site.inventory, 15, "gpu[03-04]")
    assert not probe(session).errors
    assert not session.transport.warnings
    site.cluster.host("gpu01").must("systemctl mask --now ssh; pkill sshd || true")
    assert not probe(session).errors
    session.close()
    (warning,) = (*session.transport.warnings,)
    assert warning.startswith("gpu01: failed as a gateway, its hosts went through gpu02: "), warning


@pytest.fixture
def nested(site: Site) -> Site:
    """The same, with gpu02 behind gpu01, and the others behind gpu02."""
    (site.folder / "remedy.yaml").write_text(
        f"ssh: {{gateways: {{gpu01: gpu02, gpu02: 'gpu[03-04]'}}{SHORT}}}\n"
    )
    return site


@pytest.mark.full
def test_a_gateway_behind_another_that_is_dead_is_named(nested: Site) -> None:
    assert not errors(nested)
    nested.cluster.host("gpu02").must("systemctl mask --now ssh; pkill sshd || true")
    messages = errors(nested)
    assert set(messages) == {"gpu02", "gpu03", "gpu04"}
    for name in ("gpu03", "gpu04"):
        assert "unreachable through gpu02: gpu02: no connection from gpu01: ssh: " in messages[name]
    text = nested.remedy("check").text
    assert "Does gpu02 answer, with the keys of gpu01? ssh " in text


@pytest.mark.full
def test_trust_records_keys_on_gateways_behind_gateways_in_one_run(nested: Site) -> None:
    known = "/root/.ssh/known_hosts"
    for name in ("gpu01", "gpu02"):
        nested.cluster.host(name).must(f"cp {known} {known}.kept; : >{known}")
    recorded = nested.remedy("trust", "--yes")
    assert recorded.code == 0, recorded.text
    assert f"recorded 1 host in {known} on gpu01" in recorded.text
    assert f"recorded 2 hosts in {known} on gpu02" in recorded.text
    assert not errors(nested)
    for name in ("gpu01", "gpu02"):
        nested.cluster.host(name).must(f"mv {known}.kept {known}")


@pytest.mark.full
def test_guarded_changes_are_confirmed_through_gateways_or_taken_back(site: Site) -> None:
    path = "/etc/remedy-test-gateway"
    action, blobs = new_file(path)
    session = open_hosts(site.inventory, 60, "gpu03")
    outcome = carry_out(session, plan_of("gpu03", action, blobs), probe(session))
    assert outcome.hosts["gpu03"].results[0].status.value == "done"
    assert site.cluster.run("gpu03", f"cat {path}; rm {path}").stdout == "guarded\n"
    session.close()
    session = open_hosts(site.inventory, 10, "gpu04")
    outcome = carry_out(session, plan_of("gpu04", LOCKOUT, {}), probe(session))
    session.close()
    error = outcome.hosts["gpu04"].error
    assert error is not None
    assert "took it back by itself" in error.message
    assert site.cluster.run("gpu04", LOCKOUT.observe).stdout.strip() == "gone"


@pytest.mark.full
def test_gateways_without_the_release_that_is_here_are_told_how_to_get_it(site: Site) -> None:
    for name in ("gpu01", "gpu02"):
        site.cluster.host(name).must(
            f"sed -i 's/^__version__ = .*/__version__ = \"1.9.1\"/' {PACKAGES}/ClusterShell/__init__.py"
        )
    checked = site.remedy("check")
    assert f"it has ClusterShell 1.9.1, and here is {ClusterShell.__version__}" in checked.text
    assert f"pip install ClusterShell=={ClusterShell.__version__}" in checked.text
    for name in ("gpu01", "gpu02"):
        site.cluster.host(name).must(f"mv {PACKAGES}/ClusterShell {PACKAGES}/gone")
    checked = site.remedy("check")
    assert "it has no ClusterShell for python3" in checked.text


@pytest.mark.full
def test_a_host_whose_key_or_login_its_gateway_lacks_says_so(site: Site) -> None:
    known = "/root/.ssh/known_hosts"
    for name in ("gpu01", "gpu02"):
        site.cluster.host(name).must(f"cp {known} {known}.kept; : >{known}")
    said = errors(site)
    assert "does not know the ssh host key" in said["gpu03"]
    for name in ("gpu01", "gpu02"):
        site.cluster.host(name).must(f"mv {known}.kept {known}")
    site.cluster.host("gpu04").must("mv /etc/ssh/lab_authorized_keys /etc/ssh/kept")
    said = errors(site)
    site.cluster.host("gpu04").must("mv /etc/ssh/kept /etc/ssh/lab_authorized_keys")
    assert set(said) == {"gpu04"}, said
    assert "the host refused the gateway's login" in said["gpu04"]


@pytest.mark.full
def test_a_password_for_sudo_goes_where_it_is_asked_for(site: Site) -> None:
    inventory = site.inventory.read_text()
    site.edit_inventory(
        {
            "gpu03": {"ssh_user": "guarded", "_sudo_password": GUARDED_PASSWORD},
            "gpu04": {"ssh_user": "trainer", "_sudo": True},
        }
    )
    try:
        applied = site.remedy("apply", "--yes", "--no-verify")
        checked = site.remedy("check", "--exit-code")
    finally:
        site.inventory.write_text(inventory)
    assert applied.code == 0, applied.text
    assert checked.code == 0, checked.text


@pytest.mark.full
def test_a_command_that_is_killed_leaves_nothing_behind(site: Site) -> None:
    site.cluster.host("gpu03").write("/etc/profile.d/slow.sh", b"sleep 30\n")
    site.cluster.host("gpu03").must("ln -sf /etc/profile.d/slow.sh /root/.bashrc")
    started = subprocess.Popen(
        site.command("check"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    there = "pgrep -f '[C]lusterShell.Gateway'"
    names = ("gpu01", "gpu02")
    wait_for(lambda: any(not site.cluster.run(n, there).returncode for n in names), 60)
    time.sleep(1)
    started.kill()
    started.wait()
    wait_for(lambda: all(site.cluster.run(n, there).returncode for n in names), 30)
    site.cluster.host("gpu03").must("rm /etc/profile.d/slow.sh /root/.bashrc")


@pytest.mark.full
def test_trust_records_keys_on_the_gateways_that_lack_them(site: Site) -> None:
    known = "/root/.ssh/known_hosts"
    gateways = ("gpu01", "gpu02")
    site.cluster.host("gpu01").must(f": >{known}")
    assert "remedy trust" in site.remedy("check", "--limit", "gpu03").text
    recorded = site.remedy("trust", "--yes")
    assert recorded.code == 0, recorded.text
    assert f"recorded 2 hosts in {known} on gpu01" in recorded.text
    assert set(errors(site)) == set()
    again = site.remedy("trust", "--yes")
    assert "recorded" not in again.text, again.text

    site.cluster.host("gpu03").must("rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh")
    refused = site.remedy("trust", "--yes")
    assert (refused.code, "the key of gpu03 has changed" in refused.text) == (4, True), refused.text
    assert "has CHANGED" in errors(site)["gpu03"]
    replaced = site.remedy("trust", "--yes", "--replace", "gpu03")
    assert replaced.code == 0, replaced.text
    assert "on gpu[01-02]" in replaced.text
    assert set(errors(site)) == set()
    line = site.cluster.run(
        "gpu03", "cut -d' ' -f2 /etc/ssh/ssh_host_ed25519_key.pub"
    ).stdout.strip()
    for name in gateways:
        assert site.cluster.run(name, f"grep -c '{line}' {known}").stdout.strip() == "1"
