"""The state of state.json, host name and hosts block with pyinfra's own operations: a plain deploy file."""

import json
from io import StringIO
from pathlib import Path

from pyinfra import host, inventory  # type: ignore[attr-defined]
from pyinfra.operations import files, server, systemd

wanted = json.loads(Path(__file__).with_name("state.json").read_text(encoding="utf-8"))

server.hostname(name="Host name", hostname=host.name)

files.block(
    name="Hosts block",
    path="/etc/hosts",
    marker="# {mark} cluster, by pyinfra",
    content=[f"{peer.data.cluster_address} {peer.name}" for peer in inventory],
)

for key, value in wanted["sysctls"].items():
    server.sysctl(
        name=f"Sysctl {key}",
        key=key,
        value=value,
        persist=True,
        persist_file=wanted["sysctl_file"],
    )

for path, content in wanted["files"].items():
    files.put(name=f"File {path}", src=StringIO(content), dest=path, mode="644")

systemd.service(
    name="Service",
    service=wanted["service"],
    running=True,
    enabled=True,
)
