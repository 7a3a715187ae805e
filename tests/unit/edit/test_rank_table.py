"""The rank table of Ascend clusters, and the file of device addresses that it is made from."""

from __future__ import annotations

import json

import pytest

from remedy.edit.rank_table import Server, parse_hccn, rank_table


def test_devices_come_in_the_order_of_their_numbers() -> None:
    content = b"address_10=10.1.0.10\n# address_3=1.1.1.1\nnetmask_2=255.255.0.0\n address_2 = 10.1.0.2 \n"
    assert parse_hccn(content) == (((2, "10.1.0.2"), (10, "10.1.0.10")), ())


@pytest.mark.parametrize(
    ("lines", "line", "facts"),
    [
        ("address_0=10.0.0.300\n", 1, ("10.0.0.300", "not an address")),
        ("address_0=10.0.0.1\naddress_1=127.0.0.1\n", 2, ("device 1", "127.0.0.1")),
        ("\naddress_4=0.0.0.0\n", 2, ("device 4", "0.0.0.0")),  # noqa: S104
        ("address_0=224.0.0.1\n", 1, ("device 0", "224.0.0.1")),
        ("address_0=10.0.0.1\naddress_0=10.0.0.2\n", 2, ("device 0", "twice")),
        ("address_0=10.0.0.1\naddress_1=10.0.0.1\n", 2, ("10.0.0.1", "another device")),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    lines: str, line: int, facts: tuple[str, ...]
) -> None:
    (problem,) = parse_hccn(lines.encode())[1]
    assert problem.startswith(f"line {line}: ")
    for fact in facts:
        assert fact in problem


def test_a_line_that_is_no_address_hides_none_after_it() -> None:
    devices, problems = parse_hccn(b"address_0=nowhere\nsend_arp=x\naddress_1=10.0.0.1\n")
    assert devices == ((1, "10.0.0.1"),)
    assert len(problems) == 1


def test_a_file_without_any_address_is_wrong() -> None:
    devices, problems = parse_hccn(b"# nothing\nnetmask_0=255.255.0.0\n\xff\n")
    assert devices == ()
    assert "address_" in problems[0]


def test_ranks_are_counted_through_all_servers_and_every_number_is_text() -> None:
    servers = (
        Server("a", "10.0.0.1", ((0, "10.1.0.1"), (4, "10.1.0.2"))),
        Server("b", "10.0.0.2", ((1, "10.1.0.3"),)),
    )
    content = rank_table(servers)
    table = json.loads(content)
    assert content.endswith(b"}\n")
    assert b'\n    "version"' in content
    assert (table["version"], table["server_count"], table["status"]) == ("1.0", "2", "completed")
    assert [server["server_id"] for server in table["server_list"]] == ["10.0.0.1", "10.0.0.2"]
    assert {server["host_nic_ip"] for server in table["server_list"]} == {"reserve"}
    devices = [device for server in table["server_list"] for device in server["device"]]
    assert devices == [
        {"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"},
        {"device_id": "4", "device_ip": "10.1.0.2", "rank_id": "1"},
        {"device_id": "1", "device_ip": "10.1.0.3", "rank_id": "2"},
    ]
