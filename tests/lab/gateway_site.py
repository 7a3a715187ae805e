"""Hosts of the lab as gateways to others, which this machine does not reach."""

from __future__ import annotations

import base64
import io
import ipaddress
import tarfile
from dataclasses import dataclass
from pathlib import Path

import ClusterShell

from tests.lab.conftest import Cluster
from tests.lab.site import Site

PACKAGES = "/usr/lib/python3/dist-packages"


@dataclass(frozen=True)
class GatewaySite:
    """A cluster of which some hosts are gateways.

    Args:
        site: the inventory.
        gateways: names of the hosts that are.
    """

    site: Site
    gateways: tuple[str, ...]

    @property
    def cluster(self) -> Cluster:
        """The hosts."""
        return self.site.cluster

    @property
    def behind(self) -> tuple[str, ...]:
        """The hosts that only gateways reach."""
        return tuple(name for name in self.cluster.hosts if name not in self.gateways)

    def install(self, user: str = "root") -> None:
        """Give gateways ClusterShell and a way to log in to hosts, and close this machine's own.

        Args:
            user: that remedy logs in to gateways as.
        """
        paths = self.cluster.lab.paths
        home = "/root" if user == "root" else f"/home/{user}"
        for name in self.gateways:
            host = self.cluster.host(name)
            host.must(
                f"base64 -d | tar -C {PACKAGES} -xz",
                stdin=base64.b64encode(packed_clustershell()).decode("ascii"),
            )
            host.must(f"install -d -m 700 -o {user} {home}/.ssh")
            for file, content in (("id_ed25519", paths.key), ("known_hosts", paths.known_hosts)):
                host.write(f"{home}/.ssh/{file}", content.read_bytes())
                host.must(f"chown {user} {home}/.ssh/{file}; chmod 600 {home}/.ssh/{file}")
        network = ipaddress.ip_network(self.cluster.lab.record().management)
        here = next(network.hosts())
        for name in self.behind:
            self.cluster.host(name).must(f"ip route add blackhole {here}/32")
        self.settings()

    def settings(self, more: str = "", ssh: str = "") -> None:
        """Write remedy.yaml.

        Args:
            more: further sections.
            ssh: further settings of ``ssh``.
        """
        gateways = f"{{'{','.join(self.gateways)}': '{','.join(self.behind)}'}}"
        (self.site.folder / "remedy.yaml").write_text(f"ssh: {{gateways: {gateways}{ssh}}}\n{more}")


def packed_clustershell() -> bytes:
    """Return the ClusterShell that runs here as an archive."""
    buffer = io.BytesIO()
    folder = Path(ClusterShell.__file__).parent
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(folder, "ClusterShell", filter=lambda f: None if "__pycache__" in f.name else f)
    return buffer.getvalue()
