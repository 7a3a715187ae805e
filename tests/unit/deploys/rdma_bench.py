"""Facts of RDMA ports, as reports compare them."""

from __future__ import annotations

from typing import Any

from remedy.probe import RdmaPort


def port(
    device: str, state: str = "ACTIVE", layer: str = "InfiniBand", rate: float = 400.0
) -> RdmaPort:
    return RdmaPort(device, 1, state, "LinkUp", rate, layer, "", (), {})


def rdma(*ports: RdmaPort) -> dict[str, Any]:
    return {"rdma": ports}
