"""The probe on real hosts: everything is told, nothing is changed, two answers agree."""

from __future__ import annotations

from typing import TypeVar

from remedy.probe import File, HostState, ProbeRequest, fingerprint, parse_probe, render_probe
from remedy.values import Fact, Unknown
from tests.lab.conftest import Cluster

T = TypeVar("T")


def known(fact: Fact[T]) -> T:
    assert not isinstance(fact, Unknown), fact
    return fact


def probe(cluster: Cluster, host: str, user: str = "") -> HostState:
    request = ProbeRequest(names=tuple(cluster.hosts), user=user)
    answer = cluster.host(host).run(["sh", "-s"], stdin=render_probe(request))
    assert answer.returncode == 0
    assert answer.stderr == ""
    return parse_probe(host, answer.stdout, request)


def test_everything_is_known_of_a_healthy_host(idle_cluster: Cluster) -> None:
    found = probe(idle_cluster, idle_cluster.hosts[0])
    assert found.complete
    assert found.root
    unknown = [
        group for group in HostState.model_fields if isinstance(getattr(found, group), Unknown)
    ]
    assert unknown == []
    assert not [path for path, file in found.files.items() if isinstance(file, Unknown)]


def test_two_answers_of_one_host_have_one_fingerprint(idle_cluster: Cluster) -> None:
    first, second, *_ = idle_cluster.hosts
    prints = [fingerprint(probe(idle_cluster, host)) for host in (first, first, second)]
    assert prints[0] == prints[1] != prints[2]


def test_the_firewalls_in_force_are_seen(cluster: Cluster) -> None:
    host = cluster.hosts[0]
    cluster.run(
        host, "ufw --force enable && nft add table inet own && iptables-legacy -A INPUT -j ACCEPT"
    )
    found = known(probe(cluster, host).firewalls)
    assert found.ufw is True
    assert {("ip", "filter"), ("inet", "own")} <= set(known(found.nft).tables)
    assert "-A INPUT -j ufw-before-input\n" in known(found.iptables)
    assert "-A INPUT -j ACCEPT\n" in known(found.iptables_legacy)


def test_a_service_is_seen_as_systemd_sees_it(cluster: Cluster) -> None:
    host = cluster.hosts[0]
    cluster.run(host, "systemctl enable --now nftables && systemctl mask ufw")
    units = known(probe(cluster, host).units)
    assert "ssh.service" in units
    assert "sshd.service" not in units  # another name for it
    for name, unit in units.items():
        if unit.load == "loaded":
            active = cluster.run(host, ["systemctl", "is-active", name]).stdout.strip()
            assert unit.active == ("active" if active == "active" else "inactive"), name
    assert (units["nftables.service"].active, units["nftables.service"].enabled) == (
        "active",
        "enabled",
    )
    assert units["ufw.service"].enabled == "masked"


def test_what_a_users_files_lead_to_is_seen_as_that_user_sees_it(cluster: Cluster) -> None:
    host = cluster.hosts[0]
    cluster.run(
        host,
        "useradd -m -s /bin/bash ann && cd ~ann && ln -s /etc/shadow .nccl.conf && mkdir .openmpi &&"
        " echo btl=tcp >.openmpi/mca-params.conf && echo NCCL_DEBUG=INFO >/etc/of-root &&"
        " chmod 600 /etc/of-root && echo 'export NCCL_ALGO=Ring' >.bashrc && ln -s /etc/of-root .zshrc &&"
        " mkfifo .zshenv && chown -hR ann .",
    )
    found = probe(cluster, host, "ann")
    shadow = found.file("/home/ann/.nccl.conf")
    assert isinstance(shadow, Unknown)
    assert "its user may not read it" in shadow.reason
    assert known(found.file("/home/ann/.openmpi/mca-params.conf")).content == b"btl=tcp\n"
    homes = [m.path for m in known(found.mentions) if m.path.startswith("/home/ann/.")]
    assert set(homes) & {"/home/ann/.bashrc", "/home/ann/.zshrc"} == {"/home/ann/.bashrc"}
    assert known(found.names).user == "ann"


def test_an_immutable_file_is_seen(cluster: Cluster) -> None:
    host = cluster.hosts[0]
    try:
        cluster.run(host, "chattr +i /etc/hosts")
        file = known(probe(cluster, host).file("/etc/hosts"))
    finally:
        cluster.run(host, "chattr -i /etc/hosts")
    assert isinstance(file, File)
    assert file.immutable


def test_a_name_server_that_is_silent_costs_no_name_of_the_hosts_file(cluster: Cluster) -> None:
    host, server, *_ = cluster.hosts
    drop = "nft 'table ip silent { chain input { type filter hook input priority 0; udp dport 53 drop; }; }'"
    cluster.run(server, drop)
    address = cluster.host(server).record.management_address
    cluster.run(
        host, f"echo nameserver {address} >/etc/resolv.conf; echo 10.9.9.9 {server} >>/etc/hosts"
    )
    names = known(probe(cluster, host).names)
    assert names.peers[server] == ("10.9.9.9",)
    assert all(addresses == () for name, addresses in names.peers.items() if name != server)
