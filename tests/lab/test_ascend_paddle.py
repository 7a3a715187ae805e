"""A rank table and Paddle's endpoints on real hosts, made from every host's own files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from remedy.lab.faults.ascend import DEVICES
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

TABLE = "/etc/hccl_rank_table.json"
SPEC = "ascend: {rank_table: true}\npaddle: {ports: 8000-8999, devices: 2}\n"


def test_one_table_on_all_hosts_or_none(cluster: Cluster) -> None:
    site = Site(cluster)
    for name in cluster.hosts:
        cluster.fault(name, "ascend-host")
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    bad = cluster.hosts[1]
    cluster.fault(bad, "wrong-hccn-conf")
    seen = site.remedy("check", "--json")
    assert "line 1: device 0 has 127.0.0.1, which no other host can reach" in seen.stdout
    assert f"the device address 192.168.101.1 is also on {cluster.hosts[0]}" in seen.stdout
    Path(site.folder, "remedy.yaml").write_text(SPEC.partition("\n")[0], encoding="utf-8")
    refused = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert refused.code == 1
    for name in cluster.hosts:
        assert cluster.run(name, f"ls {TABLE}").returncode != 0

    cluster.fault(bad, "ascend-host")
    Path(site.folder, "remedy.yaml").write_text(SPEC, encoding="utf-8")
    fixed = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert fixed.code == 0, fixed.text
    tables = {cluster.host(name).read(TABLE) for name in cluster.hosts}
    assert len(tables) == 1
    table = json.loads(tables.pop())
    servers = [server["server_id"] for server in table["server_list"]]
    assert servers == list(site.addresses().values())
    ranks = [d["rank_id"] for server in table["server_list"] for d in server["device"]]
    assert ranks == [str(n) for n in range(DEVICES * len(cluster.hosts))]
    look = "env; paddle-fixed-ports 1 env"
    for number, (name, address) in enumerate(site.addresses().items()):
        command = cluster.host(name).ssh([look])
        got = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert f"RANK_TABLE_FILE={TABLE}\n" in got
        assert f"HCCL_IF_IP={address}\n" in got
        assert f"PADDLE_CURRENT_ENDPOINT={address}:8001\n" in got
        assert f"PADDLE_TRAINER_ID={number * 2 + 1}\n" in got
    again = site.remedy("apply", "--yes", "--json", "--no-verify")
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    back = site.remedy("rollback", fixed.document["run"], "--yes")
    assert back.code == 0, back.text
    for name in cluster.hosts:
        assert cluster.run(name, f"ls {TABLE} || ls /usr/local/bin/paddle-fixed-ports").returncode
