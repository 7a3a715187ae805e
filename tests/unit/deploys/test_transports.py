"""Variables that leave a job no way to other hosts."""

from __future__ import annotations

import pytest

from remedy.plan import FindingKind
from remedy.probe import Address, HostState, Mention, Network, RdmaPort
from tests.unit.deploys.environment_bench import ENV, MCA, findings, host, port

IB = (port("mlx5_0", "InfiniBand"),)


def said(line: str, *, path: str = ENV, rdma: tuple[RdmaPort, ...] = ()) -> list[str]:
    """Return what is said of a host with this line in a file."""
    state = host(files={path: f"{line}\n".encode()}, rdma=rdma)
    return [finding.title for finding in findings(state, FindingKind.BLOCKED)]


@pytest.mark.parametrize(
    ("line", "rdma", "words"),
    [
        ("OMPI_MCA_btl=self,vader", (), "none of these transports leaves the host"),
        ("OMPI_MCA_btl=self,sm", IB, "none of these transports leaves the host"),
        ("OMPI_MCA_btl=^tcp", (), "leaves TCP out, and no RDMA port is active"),
        ("OMPI_MCA_btl=^openib,tcp", IB, ""),
        ("OMPI_MCA_btl=^openib", (), ""),
        ("OMPI_MCA_btl=tcp,self", (), ""),
        ("UCX_TLS=self,sm,cuda_copy", (), "none of these transports leaves the host"),
        ("UCX_TLS=tcp,self", (), ""),
        ("UCX_TLS=all", (), ""),
        ("NCCL_NET=IB", (), "no RDMA port is active here"),
        ("NCCL_NET=IB", IB, ""),
        ("NCCL_NET=Socket", (), ""),
        ("NCCL_IB_HCA=mlx5_9", IB, "no active RDMA port here is called mlx5_9"),
        ("NCCL_IB_HCA==mlx5_0:2", IB, "no active RDMA port here is called mlx5_0:2"),
        ("NCCL_IB_HCA=mlx5", IB, ""),
        ("NCCL_IB_HCA==mlx5_0:1", IB, ""),
        ("NCCL_IB_HCA=^mlx5", IB, "leaves out all RDMA ports"),
        ("NCCL_IB_HCA=^mlx5_7", IB, ""),
        ("NCCL_IB_HCA=mlx5_9", (), ""),
        ("NCCL_SOCKET_FAMILY=AF_INET6", (), "eno2 has no address of IPv6"),
        ("NCCL_SOCKET_FAMILY=AF_INET", (), ""),
    ],
)
def test_a_choice_without_a_way_to_peers_is_named(
    line: str, rdma: tuple[RdmaPort, ...], words: str
) -> None:
    titles = said(line, rdma=rdma)
    assert len(titles) == bool(words)
    assert all(words in title and line in title for title in titles)


def test_a_line_of_open_mpis_own_file_counts() -> None:
    (title,) = said("btl = self,vader", path=MCA)
    assert title.startswith(f"{MCA} sets OMPI_MCA_btl=self,vader: ")


def test_with_an_address_of_ipv6_its_family_can_work() -> None:
    state = with_ipv6(host(files={ENV: b"NCCL_SOCKET_FAMILY=AF_INET6\n"}))
    assert findings(state, FindingKind.BLOCKED) == []


def with_ipv6(state: HostState) -> HostState:
    assert isinstance(state.network, Network)
    more = Address(address="fe80::1", prefix=64, scope="link")
    interfaces = tuple(
        i.model_copy(update={"addresses": (*i.addresses, more)}) if i.name == "eno2" else i
        for i in state.network.interfaces
    )
    network = state.network.model_copy(update={"interfaces": interfaces})
    return state.model_copy(update={"network": network})


def test_a_file_that_bash_env_names_reaches_scripts() -> None:
    lines = (Mention(path="/opt/site.sh", line=2, text="export NCCL_NET=IB"),)
    assert findings(host(mentions=lines), FindingKind.BLOCKED) == []
    session = host(mentions=lines, environment={"BASH_ENV": "/opt/site.sh"})
    (finding,) = findings(session, FindingKind.BLOCKED)
    assert "no RDMA port is active here" in finding.title
    assert "/opt/site.sh:2" in finding.evidence[0]
    assert findings(session, FindingKind.UNKNOWN) == []
