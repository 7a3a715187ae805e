"""The hosts that `remedy lab up` runs on this machine.

It works under plain pyinfra too. Which lab is listed: the one whose state file lies beside this
file, else the one that REMEDY_LAB_NAME names (without it: "default") under REMEDY_LAB_DIR (without
it: /var/lib/remedy-lab).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def _state() -> Path:
    beside = Path(__file__).parent / "state.json"
    if beside.exists():
        return beside
    base = Path(os.environ.get("REMEDY_LAB_DIR") or "/var/lib/remedy-lab")
    return base / "labs" / (os.environ.get("REMEDY_LAB_NAME") or "default") / "state.json"


def _read() -> dict[str, Any]:
    path = _state()
    try:
        lab: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RuntimeError(f"no lab is running ({path} is not there): remedy lab up") from None
    except PermissionError:
        raise RuntimeError(f"{path} cannot be read: labs belong to root") from None
    if lab.get("schema") != "remedy.lab/1":
        raise RuntimeError(f"{path} is of a version that this inventory does not know")
    return lab


def _host(lab: dict[str, Any], host: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    data = {
        "ssh_hostname": host["management_address"],
        "ssh_user": "root",
        "ssh_key": lab["key"],
        "ssh_known_hosts_file": lab["known_hosts"],
        "cluster_address": host["cluster_address"],
    }
    if lab["python"]:
        data["python"] = lab["python"]
    return host["name"], data


_lab = _read()
gpus = [_host(_lab, host) for host in _lab["hosts"]]
