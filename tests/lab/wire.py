"""Who can connect to whom over a lab's cluster network."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from ipaddress import IPv4Interface

from tests.lab.site import Site

# What training needs to be open between peers, and a port that is nobody's affair.
NEEDED = (29400, 29500, 29563, 32768, 60999)
OTHER = 8000
LISTEN = """\
import socket, time
held = []
for port in {ports!r}:
    held.append(socket.create_server(("0.0.0.0", port)))
open("/run/listening", "w").close()
time.sleep(3600)
"""
CONNECT = """\
import socket, sys, threading
own, ports, targets = sys.argv[1], eval(sys.argv[2]), sys.argv[3:]
def attempt(target, port):
    try:
        socket.create_connection((target, port), 1.5, (own, 0)).close()
        print(f"{target} {port}\\n", end="")
    except OSError:
        pass
pairs = [(target, port) for target in targets for port in ports]
threads = [threading.Thread(target=attempt, args=pair) for pair in pairs]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


class Wire:
    """Who can connect to whom over the cluster network, tried on the hosts themselves."""

    def __init__(self, site: Site) -> None:
        self.cluster = site.cluster
        self.records = {one.name: one for one in site.cluster.lab.record().hosts}
        first = next(iter(self.records.values())).cluster_address
        self.stranger = str(IPv4Interface(f"{first}/24").network[99])

    def listen(self, hosts: Iterable[str]) -> None:
        """Have listeners on every port of the test."""
        program = LISTEN.format(ports=(*NEEDED, OTHER))
        for host in hosts:
            self.cluster.run(
                host, "rm -f /run/listening; systemctl reset-failed listen 2>/dev/null"
            )
            words = ["systemd-run", "--quiet", "--unit=listen", "python3", "-c", program]
            self.cluster.host(host).must(words)
        for host in hosts:
            self.cluster.host(host).must(
                "for i in $(seq 100); do [ ! -e /run/listening ] || exit 0; sleep 0.1; done; exit 1"
            )

    def reached(
        self, origin: str, targets: Iterable[str], ports: Iterable[int], own: str = ""
    ) -> dict[str, list[int]]:
        """Return the ports of each target that ``origin`` can connect to."""
        own = own or self.records[origin].cluster_address
        names = {self.records[name].cluster_address: name for name in targets}
        words = ["python3", "-c", CONNECT, own, repr(tuple(ports)), *names]
        found: dict[str, list[int]] = {name: [] for name in names.values()}
        for line in self.cluster.host(origin).must(words).splitlines():
            address, port = line.split()
            found[names[address]].append(int(port))
        return {name: sorted(ports) for name, ports in found.items()}

    def strangers(self, origin: str, targets: Iterable[str]) -> dict[str, list[int]]:
        """The same for an address of the cluster network that no host of the inventory has."""
        device = shlex.quote(self.records[origin].cluster_interface)
        self.cluster.host(origin).must(f"ip addr replace {self.stranger}/24 dev {device}")
        try:
            return self.reached(origin, targets, (22, NEEDED[1], NEEDED[3]), self.stranger)
        finally:
            self.cluster.host(origin).must(f"ip addr del {self.stranger}/24 dev {device}")
