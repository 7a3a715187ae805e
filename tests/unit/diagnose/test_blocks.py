"""Blocks of names and values mean the same behind what a launcher puts before every line of them."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.states import blocks

PREFIXES = (
    "gpu-node-3: ",
    "3: ",
    "[gpu-node-3] ",
    "gpu-node-3  | ",
    "[1,3]<stdout>:",
    "2026-03-04T05:06:{n}.1Z ",
    "gpu-node-3: 2026-03-04T05:06:{n}.123 ",
)
SMI = """==============NVSMI LOG==============

Driver Version                            : 570.86.15
GPU 00000000:3B:00.0
    Fabric
        State                             : Completed
        Status                            : Success
        Health
            Bandwidth                     : Full
            Route Unhealthy               : {route}
    Remapped Rows
        Remapping Failure Occurred        : {failed}"""
XML = """<?xml version="1.0" ?>
<nvidia_smi_log>
\t<driver_version>550.54.15</driver_version>
\t<gpu id="00000000:3B:00.0">
\t\t<ecc_errors><volatile><dram_uncorrectable>{errors}</dram_uncorrectable></volatile></ecc_errors>
\t\t<clocks_event_reasons>
\t\t\t<clocks_event_reason_hw_thermal_slowdown>{slow}</clocks_event_reason_hw_thermal_slowdown>
\t\t</clocks_event_reasons>
\t\t<ecc_repair><tpc_repair_pending>{repair}</tpc_repair_pending></ecc_repair>
\t\t<remapped_rows><remapped_row_failure>{failed}</remapped_row_failure></remapped_rows>
\t\t<fabric><state>{fabric}</state><status>Success</status></fabric>
\t</gpu>
</nvidia_smi_log>"""
PORT = """CA 'mlx5_0'
\tCA type: MT4123
\tNumber of ports: 1
\tPort 1:
\t\tState: {state}
\t\tPhysical state: {physical}
\t\tRate: {rate}
\t\tLink layer: InfiniBand"""
RAS = """Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8         4         4   RUNNING  {status}

Errors
======
{error}"""
BEHIND = """
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  3 ranks have launched up to operation 6650
  1 rank has launched up to operation 6649
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
"""
SOUND = {"route": "False", "failed": "No"}
SOUND_XML = {
    "errors": "0",
    "slow": "Not Active",
    "failed": "No",
    "fabric": "Completed",
    "repair": "No",
}
LINK = "link mlx5_0/1 lid 65535 sm_lid 0 lmc 0 state DOWN physical_state POLLING"
TEXTS = {
    "a card": SMI.format(route="False", failed="Yes"),
    "a sound card": SMI.format(**SOUND),
    "a port": PORT.format(state="Down", physical="Polling", rate=10),
    "a sound port": PORT.format(state="Active", physical="LinkUp", rate=200),
    "ranks": RAS.format(status="MISMATCH", error=BEHIND),
    "sound ranks": RAS.format(status="OK", error="\n  No errors.\n"),
    "a link": LINK,
}


def _behind(prefix: str, text: str) -> list[str]:
    return [prefix.replace("{n}", f"{10 + n}") + row for n, row in enumerate(text.split("\n"))]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_block_is_read_behind_any_prefix(text: str, prefix: str) -> None:
    plain, behind = (diagnose_lines({"log": _behind(p, text)}) for p in ("", prefix))
    assert (behind.label, behind.confidence) == (plain.label, plain.confidence)
    assert behind.label != "healthy"  # what a tool says of a host is never proof


def test_the_answers_of_several_hosts_in_one_file_are_read_apart() -> None:
    sound, broken = (SMI.format(route="False", failed=failed) for failed in ("No", "Yes"))
    rows = [
        row
        for pair in zip(_behind("gpu1: ", sound), _behind("gpu2: ", broken), strict=True)
        for row in pair
    ]
    (sign,) = blocks.signs_of("\n".join(rows).encode())
    assert sign.details["host"] == "gpu2"
    assert rows[sign.line - 1].startswith("gpu2:     ")


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ({}, "unknown"),
        ({"failed": "Yes"}, "gpu-hardware-xid"),
        ({"route": "True"}, "gpu-hardware-xid"),
    ],
)
def test_a_card(values: dict[str, str], label: str) -> None:
    assert diagnose_lines({"q": SMI.format(**SOUND | values).split("\n")}).label == label


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ({}, "unknown"),
        ({"errors": "5"}, "gpu-hardware-xid"),
        ({"failed": "Yes"}, "gpu-hardware-xid"),
        ({"slow": "Active"}, "gpu-hardware-xid"),
        ({"repair": "Yes"}, "gpu-hardware-xid"),
        ({"fabric": "In Progress"}, "fabricmanager-not-running"),
    ],
)
def test_a_card_as_xml(values: dict[str, str], label: str) -> None:
    read = diagnose_lines({"q": XML.format(**SOUND_XML | values).split("\n")})
    assert read.label == label
    if read.lead:
        assert read.lead.details["device"] == "00000000:3B:00.0"


@pytest.mark.parametrize(
    ("state", "physical", "rate", "label"),
    [
        ("Active", "LinkUp", "200", "unknown"),
        ("Active", "LinkUp", "2.5", "ib-link-fault"),
        ("Down", "LinkErrorRecovery", "200", "ib-link-fault"),
        ("Armed", "LinkUp", "200", "ib-misconfig"),
    ],
)
def test_a_port(state: str, physical: str, rate: str, label: str) -> None:
    text = PORT.format(state=state, physical=physical, rate=rate)
    assert diagnose_lines({"ibstat": text.split("\n")}).label == label


def test_a_rank_that_is_an_operation_behind_is_a_hint_as_text_as_well() -> None:
    read = diagnose_lines({"ras": TEXTS["ranks"].split("\n")})
    assert (read.label, read.confidence) == ("peer-died-timeout", "possible")


def test_the_answers_of_thousands_of_hosts_in_one_file_are_all_read() -> None:
    hosts = 2_000
    rows = [f"gpu{n:04}: {row}" for n in range(hosts) for row in PORT.split("\n")]
    text = "\n".join(rows).format(state="Down", physical="Polling", rate=10)
    signs = blocks.signs_of(text.encode())
    assert len({sign.details["host"] for sign in signs}) == hosts
