"""The section ``cluster``: the network of the training traffic, and the user who runs the jobs."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from remedy.spec.section import SpecSection

USER = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
"""What the name of a user may be: useradd(8), with the dots that directories allow."""


_SUBNET = {
    "type": "string",
    "description": "an IPv4 network, such as 10.20.0.0/16",
    "pattern": r"^[0-9]+(\.[0-9]+){3}(/[0-9.]+)?$",
}


def _subnet(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text, strict=False))
    except ValueError as error:
        raise ValueError from error


class ClusterSpec(SpecSection):
    """Which network carries the training traffic, and who runs the jobs.

    Args:
        subnet: the network (CIDR) that picks each host's cluster address. null: the address used for ssh where
            the host has it on an interface, else the first address in a subnet that all hosts share.
        user: who runs the jobs on the hosts: names are resolved as this user, whose start-up files are searched
            too. null: the user of ssh.
    """

    subnet: (
        Annotated[str, AfterValidator(_subnet), WithJsonSchema(_SUBNET, mode="validation")] | None
    ) = None
    user: str | None = Field(default=None, pattern=f"^{USER}$")
