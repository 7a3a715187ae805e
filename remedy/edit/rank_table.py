"""The rank table of Ascend clusters, version 1.0, and the file that its addresses come from.

Sources: MindSpore docs, tutorials/source_en/parallel/rank_table.md and sample rank_table_16pcs.json;
hccl_tools.py of mindspore-ai/models, which reads ``address_N=IP`` of /etc/hccn.conf.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

_ADDRESS = re.compile(r"address_(\d+)\s*=\s*(.*)")


@dataclass(frozen=True)
class Server:
    """A host of the table: the address it is known by, and the address of each device by id."""

    name: str
    address: str
    devices: tuple[tuple[int, str], ...]


def parse_hccn(content: bytes) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
    """Return the devices of /etc/hccn.conf in the order of their ids, and what is wrong with the file."""
    devices: dict[int, str] = {}
    wrong = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        match = _ADDRESS.fullmatch(line.strip())
        if match is None:
            continue
        device, text = int(match[1]), match[2].strip()
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            wrong.append(f"line {number}: {text!r} is not an address")
            continue
        if address.is_loopback or address.is_unspecified or address.is_multicast:
            wrong.append(
                f"line {number}: device {device} has {text}, which no other host can reach"
            )
        if device in devices:
            wrong.append(f"line {number}: device {device} is listed twice")
        elif str(address) in devices.values():
            wrong.append(f"line {number}: {text} is the address of another device too")
        devices[device] = str(address)
    if not devices and not wrong:
        wrong.append("it lists no device address (address_N=IP)")
    return tuple(sorted(devices.items())), tuple(wrong)


def rank_table(servers: Sequence[Server]) -> bytes:
    """Return the table: ranks are counted through all servers from 0, and all numbers are text."""
    rank = 0
    listed = []
    for server in servers:
        devices = []
        for device, address in server.devices:
            devices.append({"device_id": str(device), "device_ip": address, "rank_id": str(rank)})
            rank += 1
        listed.append({"server_id": server.address, "device": devices, "host_nic_ip": "reserve"})
    table = {
        "version": "1.0",
        "server_count": str(len(listed)),
        "server_list": listed,
        "status": "completed",
    }
    return json.dumps(table, indent=4).encode() + b"\n"
