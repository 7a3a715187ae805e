"""Device addresses of Ascend hosts. No lab host has an NPU: the file alone says what a table is made of."""

from __future__ import annotations

from remedy.errors import LabError
from remedy.lab.fault import HEALTHY, REPAIRED, by_hand
from remedy.lab.faults import fault
from remedy.lab.host import Host

HCCN = "/etc/hccn.conf"
DEVICES = 4


def _lines(number: int) -> bytes:
    """Return the lines that hccn_tool keeps for the devices of a host."""
    return "".join(
        f"address_{device}=192.168.{100 + device}.{number}\nnetmask_{device}=255.255.255.0\n"
        for device in range(DEVICES)
    ).encode()


@fault(
    "ascend-host",
    f"the host has {DEVICES} Ascend devices in /etc/hccn.conf, all of them right",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="its devices are right",
)
def ascend_host(host: Host) -> None:
    host.write(HCCN, _lines(host.record.number))


@fault(
    "wrong-hccn-conf",
    "a device of /etc/hccn.conf has loopback, another the address of a peer's",
    repair=by_hand("hccn_tool"),
    log=HEALTHY,
)
def wrong_hccn_conf(host: Host) -> None:
    if not host.peers:
        raise LabError(f"{host.name} has no peers", next_step="It needs a lab of two hosts.")
    peer = host.peers[0].number
    lines = _lines(host.record.number).replace(
        f"192.168.101.{host.record.number}\n".encode(), f"192.168.101.{peer}\n".encode()
    )
    first = f"192.168.100.{host.record.number}\n".encode()
    host.write(HCCN, lines.replace(first, b"127.0.0.1\n"))
