"""The section ``cluster``: the network of the training traffic."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import AfterValidator

from remedy.spec.section import SpecSection


def _subnet(text: str) -> str:
    network = ipaddress.ip_network(text, strict=False)
    if network.version != 4:
        raise ValueError("the cluster network must be IPv4")
    return str(network)


class ClusterSpec(SpecSection):
    """Which network carries the training traffic.

    ``subnet`` (CIDR) picks each host's cluster address by its network. None: the address used for ssh where the
    host has it on an interface, else the first address in a subnet that all hosts share.
    """

    subnet: Annotated[str, AfterValidator(_subnet)] | None = None
